-- Put another piece of evidence to a rollout's record, the oldest giving way.

local refusal = deposed()
if refusal then return refusal end
if call('EXISTS', key('rollout', arg.rollout)) == 0 then return refuse('rollout_unknown', arg.rollout) end
local evidence = key('evidence', arg.rollout)
call('RPUSH', evidence, arg.evidence)
call('LTRIM', evidence, -tonumber(arg.most), -1)
keep(evidence)
return {'kept'}
