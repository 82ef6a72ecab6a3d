-- Write down what the leader sees of the pools and the store cannot count; lapses when it is not told again.

local refusal = deposed()
if refusal then return refusal end
call('SET', key('levels'), arg.document, 'PX', arg.lapse)
return {'told'}
