-- uses: index
-- Keep a rollout's score. The first one stays unless it is to be replaced; the answer is what stands.
-- What the infrastructure failed is never graded, whoever computed something about it.

local r, s = key('rollout', arg.rollout), key('score', arg.rollout)
local f = call('HMGET', r, 'state', 'verdict', 'cause', 'run', 'score')
if not f[1] then return refuse('rollout_unknown', arg.rollout) end
if f[2] == 'masked' then return refuse('rollout_ended', f[2], text(f[3])) end

local stands = call('GET', s)
if stands and not arg.replace then return {'', stands} end

call('SET', s, arg.record)
keep(s)
call('HSET', r, 'score', arg.score, 'item', arg.item)
if f[1] == 'ended' then to_archive(arg.rollout) end
if f[4] then
  if not f[5] then count(f[4], {graded = 1}) end
  call('HINCRBYFLOAT', key('run', f[4]), 'score_total', tonumber(arg.score) - number(f[5]))
end
return {'1', arg.record}
