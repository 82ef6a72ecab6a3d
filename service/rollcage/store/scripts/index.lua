-- Where rollouts are found again: by run and by tenant, under a label.

-- Entries outlive expired records. Every few that come, twice as many of the oldest are looked at.
local FEW = 8

local function sweep(index)
  if call('ZCARD', index) % FEW ~= 0 then return end
  for _, old in ipairs(call('ZRANGE', index, 0, 2 * FEW - 1)) do
    if call('EXISTS', key('rollout', old)) == 0 then call('ZREM', index, old) end
  end
end

-- Pods can tell which rollout they serve before anybody has told its names; until a gateway
-- does, such a rollout is neither listed nor counted.
local function file(rollout, label)
  local f = call('HMGET', key('rollout', rollout), 'ticket', 'run', 'tenant_key')
  if not f[2] then return end
  for _, owner in ipairs({f[2], f[3]}) do
    local index = key('index', owner, label)
    call('ZADD', index, f[1], rollout)
    sweep(index)
    keep(index)
  end
end

local function unfile(rollout, label)
  local f = call('HMGET', key('rollout', rollout), 'run', 'tenant_key')
  if not f[1] then return end
  for _, owner in ipairs(f) do call('ZREM', key('index', owner, label), rollout) end
end

local function count(run, changes)
  if not run then return end
  for field, by in pairs(changes) do call('HINCRBY', key('run', run), field, by) end
  call('HSET', key('run', run), 'last_at', now)
  keep(key('run', run))
end

-- The record begins with the first ask and holds the rollout's place in line.
local function record()
  local r = key('rollout', arg.rollout)
  if call('HEXISTS', r, 'ticket') == 0 then
    call('HSET', r, 'state', 'asked', 'environment', arg.environment, 'ticket', sequence())
  end
  if arg.tenant and call('HSETNX', r, 'tenant', arg.tenant) == 1 then
    call('HSET', r, 'name', arg.name, 'run', arg.run, 'run_name', arg.run_name, 'tenant_key', arg.tenant_key)
  end
  keep(r)
end

-- From here on the rollout is listed and counted; once, however often it is placed.
local function commence(rollout)
  local r = key('rollout', rollout)
  local f = call('HMGET', r, 'run', 'run_name', 'tenant', 'tenant_key', 'ticket', 'environment')
  call('ZADD', key('activity', f[6]), 'NX', now, rollout)
  if not f[1] or call('HSETNX', r, 'begun_at', now) == 0 then return end
  file(rollout, 'all')
  file(rollout, 'active')
  call('HSET', key('run', f[1]), 'name', f[2], 'tenant', f[3])
  call('ZADD', key('runs', f[4]), 'NX', f[5], f[1])
  keep(key('runs', f[4]))
  count(f[1], {rollouts = 1, active = 1})
end
