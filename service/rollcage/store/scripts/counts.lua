-- uses: index pool
-- How an environment stands, without walking anything.

reap(arg.environment)
local env = arg.environment
local pledged = call('HMGET', key('pledges', env), 'left', 'aside')
return {
  call('SCARD', key('ready', env)), number(pledged[2]), call('ZCARD', key('bindings', env)),
  call('ZCARD', key('lapses', env)), number(pledged[1]), call('ZCARD', key('spent', env)),
}
