-- Every verb of a Redis or Valkey store: one call of this script, so one atomic step. All times are the server's.
--
-- A task is a hash. Of a queue, `free` and `expired` are ordered by position, `later` and `leased` by when they are due.
-- Whole numbers travel as text: this Lua would print large ones rounded; what is missing is an empty text. In a
-- rehearsal `write` does nothing.

local prefix = KEYS[1]
local verb, schema, rehearse, once, digest, life, fence, generation = unpack(ARGV, 1, 8)

-- How many rows one call looks at: a server does nothing else meanwhile.
local most = 500

local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

local function key(...) return table.concat({prefix, ...}, ':') end
local function whole(number) return string.format('%.0f', number) end
local function write(...) if rehearse == '0' then return redis.call(...) end end
local function refuse(...) error({refusal = {...}}) end

local function load(id)
  local names = {'queue', 'body', 'status', 'generation', 'attempts', 'max', 'by', 'at', 'due', 'position', 'ended'}
  local found = redis.call('HMGET', key('task', id), unpack(names))
  if not found[1] then refuse('TASK_NOT_FOUND', id) end
  local task = {id = id}
  for i, name in ipairs(names) do task[name] = found[i] or '' end
  local is_last = tonumber(task.max) > 0 and tonumber(task.attempts) >= tonumber(task.max)
  task.is_last, task.is_now = is_last, task.status
  if task.status == 'claimed' and tonumber(task.due) <= now then task.is_now = is_last and 'failed' or 'expired' end
  return task
end

-- `asked` is the generation that was named, if it is another than the current one.
local function lost(task, asked)
  refuse('LEASE_LOST', task.id, asked or task.generation, task.generation, task.is_now)
end

-- The task, if that generation is its current one.
local function held(id, asked)
  local task = load(id)
  if task.generation ~= asked then lost(task, asked) end
  return task
end

local function finishable(id, asked)
  local task = held(id, asked)
  if task.status ~= 'done' and task.status ~= 'claimed' then lost(task) end
  return task
end

-- To be claimed at that time; 0 is at once.
local function queue_up(queue, id, position, due)
  if due > now then write('ZADD', key('later', queue), whole(due), id)
  else write('ZADD', key('free', queue), position, id) end
end

local function end_lease(task)
  write('ZREM', key('leased', task.queue), task.id)
  write('ZREM', key('expired', task.queue), task.id)
end

-- Moves some of what has become due to where it is claimed from. Changes nothing that anybody can see.
local function sweep(queue)
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', key('later', queue), '-inf', now, 'LIMIT', 0, most)) do
    redis.call('ZREM', key('later', queue), id)
    redis.call('ZADD', key('free', queue), redis.call('HGET', key('task', id), 'position'), id)
  end
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', key('leased', queue), '-inf', now, 'LIMIT', 0, most)) do
    local task = load(id)
    redis.call('ZREM', key('leased', queue), id)
    if not task.is_last then redis.call('ZADD', key('expired', queue), task.position, id) end
  end
end

-- The version that is written, and the one that counts: an expired value has none.
local function versions(name, wanted)
  local found = redis.call('HMGET', key('state', name), 'version', 'ends')
  local stored, current = tonumber(found[1] or '0'), tonumber(found[1] or '0')
  if found[2] and found[2] ~= '' and tonumber(found[2]) <= now then current = 0 end
  if wanted ~= '' and tonumber(wanted) ~= current then
    refuse('VERSION_CONFLICT', name, wanted, whole(current))
  end
  return stored, current
end

local function forget(name, version)
  if version > tonumber(redis.call('GET', key('floor')) or '0') then write('SET', key('floor'), whole(version)) end
  write('DEL', key('state', name))
  write('ZREM', key('keys'), name)
  write('ZREM', key('expiring'), name)
end

local verbs = {}

function verbs.counter_add(name, amount)
  local found = redis.call('HGET', key('counters'), name)
  local value = tonumber(found or '0') + tonumber(amount)
  if math.abs(value) > 9007199254740991 then refuse('COUNTER_RANGE', name, found or '0', amount) end
  write('HSET', key('counters'), name, whole(value))
  write('ZADD', key('names'), 0, name)
  return {whole(value), found and 'updated' or 'created'}
end

function verbs.counter_get(name) return redis.call('HGET', key('counters'), name) or '0' end

function verbs.counter_list(after, limit)
  local answer = {}
  local from = after == '' and '-' or '(' .. after
  for _, name in ipairs(redis.call('ZRANGEBYLEX', key('names'), from, '+', 'LIMIT', 0, limit)) do
    answer[#answer + 1] = {name, redis.call('HGET', key('counters'), name)}
  end
  return answer
end

function verbs.state_get(name)
  local found = redis.call('HMGET', key('state', name), 'value', 'version', 'ends')
  if not found[1] or (found[3] ~= '' and tonumber(found[3]) <= now) then return {} end
  return {{name, found[1], found[2], found[3]}}
end

-- With what was found comes where to go on; nothing if that was all.
function verbs.state_list(start, after, limit)
  local answer, bytes, from = {}, 0, '[' .. start
  if after ~= '' and after >= start then from = '(' .. after elseif start == '' then from = '-' end
  local names = redis.call('ZRANGEBYLEX', key('keys'), from, '+', 'LIMIT', 0, most)
  for i, name in ipairs(names) do
    if string.sub(name, 1, #start) ~= start then return {answer, ''} end
    local found = verbs.state_get(name)
    if #found > 0 then
      answer[#answer + 1] = found[1]
      bytes = bytes + #found[1][2]
    end
    if #answer == tonumber(limit) or bytes > 1000000 then return {answer, name} end
  end
  return {answer, #names == most and names[#names] or ''}
end

function verbs.state_set(name, value, wanted, expires)
  local stored, current = versions(name, wanted)
  local version = (stored > 0 and stored or tonumber(redis.call('GET', key('floor')) or '0')) + 1
  local ends = expires == '' and '' or whole(now + tonumber(expires))
  write('HSET', key('state', name), 'value', value, 'version', whole(version), 'ends', ends)
  write('ZADD', key('keys'), 0, name)
  if ends == '' then write('ZREM', key('expiring'), name) else write('ZADD', key('expiring'), ends, name) end
  for _, other in ipairs(redis.call('ZRANGEBYSCORE', key('expiring'), '-inf', now, 'LIMIT', 0, 20)) do
    if other ~= name then forget(other, tonumber(redis.call('HGET', key('state', other), 'version'))) end
  end
  return {whole(version), current > 0 and 'updated' or 'created'}
end

function verbs.state_unset(name, wanted)
  local stored, current = versions(name, wanted)
  forget(name, stored)
  return {whole(current), current > 0 and 'deleted' or 'unchanged'}
end

-- So many tasks that they do not fit into a list of arguments.
function verbs.task_add(queue)
  local answer, fresh = {}, {}
  local delay = tonumber(ARGV[#ARGV])
  for i = 10, #ARGV - 1, 2 do
    local id, body = ARGV[i], ARGV[i + 1]
    local known = redis.call('HMGET', key('task', id), 'queue', 'body')
    if known[1] and (known[1] ~= queue or known[2] ~= body) then refuse('TASK_CONFLICT', id) end
    if not known[1] then fresh[#fresh + 1] = {id, body} end
    answer[#answer + 1] = {id, known[1] and 'unchanged' or 'created'}
  end
  for _, task in ipairs(fresh) do
    local id, position = task[1], write('INCR', key('position'))
    write('HSET', key('task', id), 'queue', queue, 'body', task[2], 'status', 'free', 'generation', '0',
      'attempts', '0', 'max', '0', 'due', delay > 0 and whole(now + delay) or '', 'position', position)
    queue_up(queue, id, position, now + delay)
    write('ZADD', key('tasks'), position, id)
    write('ZADD', key('tasks', queue), position, id)
    write('SADD', key('queues'), queue)
  end
  return answer
end

-- Behind the arguments are the claims that are finished with it: all of them, or none.
function verbs.task_claim(queue, worker, lease, count, max)
  count = math.min(tonumber(count), most)
  for i = 14, #ARGV, 2 do finishable(ARGV[i], ARGV[i + 1]) end
  for i = 14, #ARGV, 2 do verbs.task_finish(ARGV[i], ARGV[i + 1]) end
  sweep(queue)
  local heads = {}
  for _, from in ipairs({'free', 'expired'}) do
    local found = redis.call('ZRANGE', key(from, queue), 0, count - 1, 'WITHSCORES')
    for i = 1, #found, 2 do heads[#heads + 1] = {id = found[i], position = tonumber(found[i + 1])} end
  end
  table.sort(heads, function(a, b) return a.position < b.position end)
  local answer, ends = {}, whole(now + tonumber(lease))
  for i = 1, math.min(#heads, count) do
    local task = load(heads[i].id)
    local gen, attempts = whole(task.generation + 1), whole(task.attempts + 1)
    write('HSET', key('task', task.id), 'status', 'claimed', 'generation', gen, 'attempts', attempts, 'max', max,
      'by', worker, 'at', whole(now), 'due', ends)
    write('ZREM', key('free', queue), task.id)
    write('ZREM', key('expired', queue), task.id)
    write('ZADD', key('leased', queue), ends, task.id)
    answer[#answer + 1] = {task.id, gen, task.body, attempts, ends}
  end
  return answer
end

function verbs.task_renew(id, asked, lease)
  local task = held(id, asked)
  if task.is_now ~= 'claimed' then
    if task.status == 'claimed' then task.is_now = 'expired' end
    lost(task)
  end
  local ends = whole(now + tonumber(lease))
  write('HSET', key('task', id), 'due', ends)
  write('ZADD', key('leased', task.queue), ends, id)
  return ends
end

function verbs.task_finish(id, asked)
  local task = finishable(id, asked)
  if task.status == 'done' then return 'unchanged' end
  write('HSET', key('task', id), 'status', 'done', 'due', '', 'ended', whole(now))
  end_lease(task)
  write('HINCRBY', key('done'), task.queue, 1)
  return 'updated'
end

function verbs.task_release(id, asked, delay)
  local task = held(id, asked)
  if task.status == 'done' then lost(task) end
  if task.status ~= 'claimed' then return 'unchanged' end
  end_lease(task)
  local due = now + tonumber(delay)
  write('HSET', key('task', id), 'status', task.is_last and 'failed' or 'free', 'by', '', 'at', '',
    'due', due > now and not task.is_last and whole(due) or '', 'ended', task.is_last and whole(now) or '')
  if not task.is_last then queue_up(task.queue, id, task.position, due) end
  return 'updated'
end

function verbs.task_list(queue, status, after, limit)
  local answer, bytes = {}, 0
  local all = queue == '' and key('tasks') or key('tasks', queue)
  local found = redis.call('ZRANGEBYSCORE', all, '(' .. after, '+inf', 'LIMIT', 0, most)
  for _, id in ipairs(found) do
    local task = load(id)
    after = task.position
    if status == '' or status == task.is_now then
      answer[#answer + 1] = {id, task.queue, task.is_now, task.generation, task.attempts, task.by, task.at, task.due,
        task.position, task.body}
      bytes = bytes + #task.body
    end
    if #answer == tonumber(limit) or bytes > 1000000 then return {answer, after} end
  end
  return {answer, #found == most and after or ''}
end

function verbs.task_left(queue, limit)
  local left = 0
  for _, kind in ipairs({'free', 'later', 'leased', 'expired'}) do left = left + redis.call('ZCARD', key(kind, queue)) end
  return whole(math.min(left, tonumber(limit)))
end

function verbs.task_retry(id)
  local task = load(id)
  if task.is_now == 'free' then return 'unchanged' end
  if task.is_now ~= 'failed' then refuse('TASK_NOT_FAILED', id, task.is_now) end
  write('HSET', key('task', id), 'status', 'free', 'attempts', '0', 'due', '', 'by', '', 'at', '', 'ended', '',
    'generation', whole(task.generation + 1))
  end_lease(task)
  queue_up(task.queue, id, task.position, 0)
  return 'updated'
end

function verbs.task_clean(older, done, failed, after, limit)
  local removed = 0
  local found = redis.call('ZRANGEBYSCORE', key('tasks'), '(' .. after, '+inf', 'LIMIT', 0, limit)
  for _, id in ipairs(found) do
    local task = load(id)
    after = task.position
    local ended = tonumber(task.ended) or tonumber(task.due) or tonumber(task.at) or 0
    if (task.is_now == done or task.is_now == failed) and ended <= now - tonumber(older) then
      if task.is_now == 'done' then write('HINCRBY', key('done'), task.queue, -1) end
      for _, known in ipairs(redis.call('SMEMBERS', key('fenced', id))) do write('DEL', key('once', known)) end
      write('DEL', key('task', id), key('fenced', id))
      end_lease(task)
      write('ZREM', key('tasks', task.queue), id)
      write('ZREM', key('tasks'), id)
      removed = removed + 1
    end
  end
  return {whole(removed), #found == tonumber(limit) and after or '0'}
end

function verbs.task_count(queue)
  local total = {free = 0, claimed = 0, expired = 0, done = 0, failed = 0}
  for _, name in ipairs(queue == '' and redis.call('SMEMBERS', key('queues')) or {queue}) do
    sweep(name)
    local function size(kind) return redis.call('ZCARD', key(kind, name)) end
    local free, leased, expired = size('free') + size('later'), size('leased'), size('expired')
    local done = tonumber(redis.call('HGET', key('done'), name) or '0')
    total.free, total.claimed, total.expired = total.free + free, total.claimed + leased, total.expired + expired
    total.done = total.done + done
    total.failed = total.failed + size('tasks') - free - leased - expired - done
  end
  local answer = {}
  for status, number in pairs(total) do
    if number > 0 then answer[#answer + 1] = {status, whole(number)} end
  end
  return answer
end

local function run()
  local found = redis.call('GET', key('schema'))
  if found and tonumber(found) > tonumber(schema) then refuse('STATE_TOO_NEW', found) end
  if not found then write('SET', key('schema'), schema) end
  if fence ~= '' then
    local task = held(fence, generation)
    if task.status ~= 'claimed' then lost(task) end
  end
  if once == '' then return {'done', verbs[verb](unpack(ARGV, 9, math.min(#ARGV, 16)))} end
  local known = redis.call('HMGET', key('once', once), 'digest', 'answer')
  if known[1] and known[1] ~= digest then refuse('IDEMPOTENCY_KEY_REUSED') end
  if known[1] then return {'again', cjson.decode(known[2])} end
  local answer = verbs[verb](unpack(ARGV, 9, math.min(#ARGV, 16)))
  write('HSET', key('once', once), 'digest', digest, 'answer', cjson.encode(answer))
  if life ~= '' then write('PEXPIRE', key('once', once), life) else write('SADD', key('fenced', fence), once) end
  return {'done', answer}
end

local _, answer = pcall(run)
if type(answer) ~= 'table' then return redis.error_reply(answer) end
return answer.refusal or answer
