-- Who gets the next sandbox of an environment. Uses index.
--
-- A run is in the round exactly while it wants a sandbox: a rollout of it waits,
-- or a reservation of it is not yet filled. Sandboxes go round the runs; within
-- a run the oldest ticket is first. While anybody is in the round nothing lies
-- on the ready list, so a newcomer cannot overtake.

-- Enough to keep up (every script reaps), few enough to stay short.
local REAP = 100

local function seat(env, run)
  local left = number(call('HGET', key('reservation', env, run), 'left'))
  local unfilled = left - call('SCARD', key('aside', env, run))
  if unfilled > 0 or call('ZCARD', key('queue', env, run)) > 0 then
    call('ZADD', key('round', env), 'NX', sequence(), run)
  else
    call('ZREM', key('round', env), run)
  end
end

-- Totals beside the reservations, so that counting needs no walk.
local function pledge(env, run, left, aside)
  local r = key('reservation', env, run)
  if left ~= 0 then
    call('HINCRBY', r, 'left', left)
    call('HINCRBY', key('pledges', env), 'left', left)
    call('HINCRBY', key('pledges', env), 'tenant:' .. call('HGET', r, 'tenant_key'), left)
  end
  if aside ~= 0 then call('HINCRBY', key('pledges', env), 'aside', aside) end
end

local function idle_card(sandbox)
  local f = call('HMGET', key('sandbox', sandbox), 'state', 'card')
  return f[1] == 'idle' and f[2] or nil
end

local function take_ready(env)
  local sandbox = call('SPOP', key('ready', env))
  while sandbox do
    local card = idle_card(sandbox)
    if card then return sandbox, card end
    sandbox = call('SPOP', key('ready', env))
  end
  return nil
end

local function take_aside(env, run)
  local sandbox = call('SPOP', key('aside', env, run))
  while sandbox do
    pledge(env, run, 0, -1)
    local card = idle_card(sandbox)
    if card then
      pledge(env, run, -1, 0)
      return sandbox, card
    end
    sandbox = call('SPOP', key('aside', env, run))
  end
  return nil
end

local function dequeue(env, run, rollout)
  call('ZREM', key('queue', env, run), rollout)
  call('ZREM', key('lapses', env), run .. ' ' .. rollout)
end

-- Out of the line. The ticket stays with the record, so whoever comes back has its old place.
local function leave(env, run, rollout)
  local r = key('rollout', rollout)
  dequeue(env, run, rollout)
  local entitled = call('HGET', r, 'entitled')
  if entitled then
    call('HDEL', r, 'entitled')
    if call('HGET', key('reservation', env, run), 'id') == entitled then pledge(env, run, 1, 0) end
  end
  if call('HGET', r, 'state') == 'waiting' then call('HSET', r, 'state', 'asked') end
  seat(env, run)
end

local function bind(rollout, sandbox, card)
  local r, s = key('rollout', rollout), key('sandbox', sandbox)
  local f = call('HMGET', r, 'environment', 'run', 'ticket', 'state')
  call('HDEL', s, 'aside')
  call('HSET', s, 'state', 'bound', 'rollout', rollout)
  call('HSET', r, 'state', 'bound', 'sandbox', sandbox, 'card', card, 'bound_at', now)
  call('HDEL', r, 'entitled')
  call('ZADD', key('bindings', f[1]), f[3], rollout)
  call('ZADD', key('activity', f[1]), now, rollout)
  keep(r)
  keep(s)
  commence(rollout)
  if f[4] == 'waiting' then
    dequeue(f[1], f[2], rollout)
    seat(f[1], f[2])
    call('PUBLISH', key('wake'), rollout)
  end
end

local function spend(env, sandbox)
  call('HSET', key('sandbox', sandbox), 'state', 'spent')
  keep(key('sandbox', sandbox))
  call('ZADD', key('spent', env), now, sandbox)
  keep(key('spent', env))
  call('PUBLISH', key('changes'), env)
end

-- The sandbox is never used again; the rollout, which has no state in it, may ask for another.
local function unbind(rollout)
  local r = key('rollout', rollout)
  local f = call('HMGET', r, 'environment', 'sandbox')
  spend(f[1], f[2])
  call('ZREM', key('bindings', f[1]), rollout)
  call('HDEL', r, 'sandbox', 'card', 'bound_at')
  call('HSET', r, 'state', 'asked')
  call('HINCRBY', r, 'placements', 1)
end

local function set_aside(env, run, sandbox)
  call('HSET', key('sandbox', sandbox), 'aside', run)
  call('SADD', key('aside', env, run), sandbox)
  pledge(env, run, 0, 1)
end

-- Out of wherever an idle sandbox lies.
local function unlist(env, sandbox)
  local run = call('HGET', key('sandbox', sandbox), 'aside')
  if not run then
    call('SREM', key('ready', env), sandbox)
  elseif call('SREM', key('aside', env, run), sandbox) == 1 then
    pledge(env, run, 0, -1)
    seat(env, run)
  end
end

-- One turn of the run whose turn it is; false when there is nothing to do.
local function turn(env)
  if call('SCARD', key('ready', env)) == 0 then return false end
  local run = call('ZRANGE', key('round', env), 0, 0)[1]
  if not run then return false end
  local rollout = call('ZRANGE', key('queue', env, run), 0, 0)[1]
  if rollout then
    local lapse = number(call('ZSCORE', key('lapses', env), run .. ' ' .. rollout))
    if lapse <= now or call('HGET', key('rollout', rollout), 'state') ~= 'waiting' then
      leave(env, run, rollout)
      return true
    end
  end
  local sandbox, card = take_ready(env)
  if not sandbox then return false end
  call('ZADD', key('round', env), sequence(), run)
  if rollout then
    bind(rollout, sandbox, card)
  else
    set_aside(env, run, sandbox)
    seat(env, run)
  end
  return true
end

local function serve(env)
  if not live() then return end
  while turn(env) do end
end

local function put_back(env, run)
  local sandbox = call('SPOP', key('aside', env, run))
  call('HDEL', key('sandbox', sandbox), 'aside')
  call('SADD', key('ready', env), sandbox)
  pledge(env, run, 0, -1)
end

local function dissolve(env, run)
  local r = key('reservation', env, run)
  for _ = 1, call('SCARD', key('aside', env, run)) do put_back(env, run) end
  pledge(env, run, -number(call('HGET', r, 'left')), 0)
  call('DEL', r)
  call('ZREM', key('reservations', env), run)
  seat(env, run)
end

-- What time has ended: waiters whose gateway fell silent, reservations nobody used.
local function reap(env)
  for _, place in ipairs(call('ZRANGEBYSCORE', key('lapses', env), '-inf', now, 'LIMIT', 0, REAP)) do
    local run, rollout = string.match(place, '^(%S+) (%S+)$')
    leave(env, run, rollout)
  end
  for _, run in ipairs(call('ZRANGEBYSCORE', key('reservations', env), '-inf', now, 'LIMIT', 0, REAP)) do
    dissolve(env, run)
  end
  serve(env)
end
