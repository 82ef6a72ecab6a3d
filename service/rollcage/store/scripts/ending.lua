-- What a call that came to its end leaves in the record, beside its result.

local function ended() return ' ' .. tostring(now) .. ' ' .. arg.outcome .. ' ' .. arg.shown end

local function count_ended(r, run, results_kept_at)
  -- The first result makes the key; later ones prolong it now and then.
  if now - number(results_kept_at) > tonumber(arg.retention) / 100 then
    call('HSET', r, 'results_kept_at', now)
    keep(key('results', arg.rollout))
  end
  if run then call('HINCRBY', key('run', run), 'outcome:' .. arg.outcome, 1) end
end
