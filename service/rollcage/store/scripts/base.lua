-- What every script starts from: the time, the names of keys.
-- KEY (the name templates) and arg (the arguments by name) are put in front of this by the loader.
--
-- The time is the server's own, so the clocks of gateways do not matter; only
-- tests pass another one.

local call = redis.call

local prefix = string.sub(KEYS[1], 1, #KEYS[1] - #KEY.state)
local function key(name, ...) return prefix .. string.format(KEY[name], ...) end

local now = tonumber(arg.now)
if not now then
  local time = call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end

-- A missing field reads as false.
local function number(value) return tonumber(value or 0) end
local function text(value) return value or '' end

local function refuse(code, ...) return {'refused', code, ...} end

local function sequence() return call('INCR', key('sequence')) end

local function keep(name) call('PEXPIRE', name, arg.retention) end

-- An emptied server has no phase, so it is not live until somebody declares it so.
local function live() return call('HGET', key('state'), 'phase') == 'live' end

-- An ended rollout is to be archived, if somebody does that; once more when its record has changed.
local function to_archive(rollout)
  if call('EXISTS', key('archivist')) == 0 then return end
  call('ZADD', key('unarchived'), now, rollout)
  keep(key('unarchived'))
end

-- Whoever was replaced as leader learns it here, before anything is written.
local function deposed()
  if not arg.leader then return nil end
  local mine, seen = tonumber(arg.leader), number(call('HGET', key('state'), 'leader'))
  if mine < seen then return refuse('not_leader', arg.leader, tostring(seen)) end
  if mine > seen then call('HSET', key('state'), 'leader', arg.leader) end
  return nil
end
