-- Every verb of a Redis or Valkey store: one call of this script, so one atomic step. All times are the server's.
--
-- A task is a hash. Of a queue, `free` is what may be claimed, by position; `later` and `leased` become due then.
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
  refuse('LEASE_LOST', task.id, tonumber(asked or task.generation), tonumber(task.generation), task.is_now)
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

-- A lease that is over has its task among the free ones, in a store of 0.1 among those of a place of their own. That
-- version would leave there what it finishes late, so the schema keeps it out.
local function end_lease(task)
  for _, kind in ipairs({'free', 'expired', 'leased'}) do write('ZREM', key(kind, task.queue), task.id) end
end

-- Moves some of what has become due, or is in that old place, to where it is claimed from. Nobody can see a change.
local function sweep(queue)
  for _, from in ipairs({'expired', 'later', 'leased'}) do
    for _, id in ipairs(redis.call('ZRANGEBYSCORE', key(from, queue), '-inf', now, 'LIMIT', 0, most)) do
      local task = load(id)
      redis.call('ZREM', key(from, queue), id)
      if task.is_now ~= 'failed' then redis.call('ZADD', key('free', queue), task.position, id) end
    end
  end
end

-- What `show` makes of each, until the page is full; with where to go on, nothing if that was all.
local function page(names, limit, show)
  local rows, bytes, after = {}, 0, ''
  for _, name in ipairs(names) do
    local row, size
    row, size, after = show(name)
    if row then
      rows[#rows + 1] = row
      bytes = bytes + size
    end
    if #rows == tonumber(limit) or bytes > 1000000 then return {rows, after} end
  end
  return {rows, #names == most and after or ''}
end

-- The version that is written, and the one that counts: an expired value has none.
local function versions(name, wanted)
  local found = redis.call('HMGET', key('state', name), 'version', 'ends')
  local stored, current = tonumber(found[1] or '0'), tonumber(found[1] or '0')
  if found[2] and found[2] ~= '' and tonumber(found[2]) <= now then current = 0 end
  if wanted ~= '' and tonumber(wanted) ~= current then
    refuse('VERSION_CONFLICT', name, tonumber(wanted), current)
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
  if math.abs(value) > 9007199254740991 then refuse('COUNTER_RANGE', name, tonumber(found or '0'), tonumber(amount)) end
  write('HSET', key('counters'), name, whole(value))
  write('ZADD', key('names'), 0, name)
  return {whole(value), found and 'updated' or 'created'}
end

function verbs.counter_get(name) return redis.call('HGET', key('counters'), name) or '0' end

function verbs.counter_list(after, limit)
  local answer = {}
  for _, name in ipairs(redis.call('ZRANGEBYLEX', key('names'), '(' .. after, '+', 'LIMIT', 0, limit)) do
    answer[#answer + 1] = {name, redis.call('HGET', key('counters'), name)}
  end
  return answer
end

function verbs.state_get(name)
  local found = redis.call('HMGET', key('state', name), 'value', 'version', 'ends')
  if not found[1] or (found[3] ~= '' and tonumber(found[3]) <= now) then return {} end
  return {{name, found[1], found[2], found[3]}}
end

-- Up to a byte that no text has.
function verbs.state_list(start, after, limit)
  local from, to = after >= start and '(' .. after or '[' .. start, '(' .. start .. '\255'
  return page(redis.call('ZRANGEBYLEX', key('keys'), from, to, 'LIMIT', 0, most), limit, function(name)
    local found = verbs.state_get(name)[1]
    return found, found and #found[2], name
  end)
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
  end
  return answer
end

-- Behind the arguments are the claims that are finished with it: all of them, or none.
function verbs.task_claim(queue, worker, lease, count, max)
  count = math.min(tonumber(count), most)
  for i = 14, #ARGV, 2 do finishable(ARGV[i], ARGV[i + 1]) end
  for i = 14, #ARGV, 2 do verbs.task_finish(ARGV[i], ARGV[i + 1]) end
  sweep(queue)
  local answer, ends = {}, whole(now + tonumber(lease))
  for _, id in ipairs(redis.call('ZRANGE', key('free', queue), 0, count - 1)) do
    local task = load(id)
    local gen, attempts = whole(task.generation + 1), whole(task.attempts + 1)
    write('HSET', key('task', id), 'status', 'claimed', 'generation', gen, 'attempts', attempts, 'max', max,
      'by', worker, 'at', whole(now), 'due', ends)
    write('ZREM', key('free', queue), id)
    write('ZADD', key('leased', queue), ends, id)
    answer[#answer + 1] = {id, gen, task.body, attempts, ends}
  end
  return answer
end

function verbs.task_renew(id, asked, lease)
  local task = held(id, asked)
  if task.is_now ~= 'claimed' then lost(task) end
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
  local all = queue == '' and key('tasks') or key('tasks', queue)
  return page(redis.call('ZRANGEBYSCORE', all, '(' .. after, '+inf', 'LIMIT', 0, most), limit, function(id)
    local task = load(id)
    local row = {id, task.queue, task.is_now, task.generation, task.attempts, task.by, task.at, task.due,
      task.position, task.body}
    return (status == '' or status == task.is_now) and row, #task.body, task.position
  end)
end

function verbs.task_left(queue, limit)
  sweep(queue)
  local function size(kind) return redis.call('ZCARD', key(kind, queue)) end
  return whole(math.min(size('free') + size('later') + size('leased') + size('expired'), tonumber(limit)))
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

function verbs.task_clean(older, statuses, after, limit)
  local removed = 0
  local found = redis.call('ZRANGEBYSCORE', key('tasks'), '(' .. after, '+inf', 'LIMIT', 0, limit)
  for _, id in ipairs(found) do
    local task = load(id)
    after = task.position
    local ended = tonumber(task.ended) or tonumber(task.due) or tonumber(task.at) or 0
    if string.find(statuses, task.is_now, 1, true) and ended <= now - tonumber(older) then
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

local function run()
  local found = redis.call('GET', key('schema'))
  if found and tonumber(found) > tonumber(schema) then refuse('STATE_TOO_NEW', tonumber(found)) end
  if found ~= schema then write('SET', key('schema'), schema) end
  if fence ~= '' then
    local task = held(fence, generation)
    if task.status ~= 'claimed' then lost(task) end
  end
  local known = once == '' and {} or redis.call('HMGET', key('once', once), 'digest', 'answer')
  if known[1] and known[1] ~= digest then refuse('IDEMPOTENCY_KEY_REUSED') end
  if known[1] then return {'again', cjson.decode(known[2])} end
  local answer = verbs[verb](unpack(ARGV, 9, math.min(#ARGV, 16)))
  if once == '' then return {'done', answer} end
  write('HSET', key('once', once), 'digest', digest, 'answer', cjson.encode(answer))
  if life ~= '' then write('PEXPIRE', key('once', once), life) else write('SADD', key('fenced', fence), once) end
  return {'done', answer}
end

local _, answer = pcall(run)
if type(answer) ~= 'table' then return redis.error_reply(answer) end
return answer.refusal or answer
