-- The verbs of a Redis or Valkey store. A verb is one call of this script, so it is one atomic step.
-- store.py says what each verb promises. All times are those of the server, in milliseconds.
--
-- The keys of a store, all with the same prefix:
--
--   schema               the version of this layout
--   counters, names      a hash with the values of counters; their names, sorted
--   state:KEY            a hash: value, version, ends
--   keys, expiring       the keys of values, sorted; those of values that expire, by that time
--   floor                the highest version of all values that were removed
--   task:ID              a hash, see `load`
--   position             the position of the last task that was added
--   tasks, tasks:QUEUE   the ids of tasks by position: of all queues, and of one
--   free:QUEUE           the ids that can be claimed, by position
--   later:QUEUE          the ids that are delayed, by the end of their delay
--   leased:QUEUE         the ids that are claimed, by the end of their lease
--   expired:QUEUE        the same as `free`, in a store that version 0.1 has written
--   queues               the names of queues, a set
--   status:STATUS        the ids of tasks with a status, by position: of all queues
--   status:STATUS:QUEUE  the same of one queue
--   migrated             how far a store of version 0.2 has got these sets: a position, or `done`
--   once:KEY             a hash with the result of a write that must not happen twice
--   fenced:ID            the keys of the fenced writes of a task
--
-- A call returns a list: {'done', data}, or {'replayed', data} with the remembered result of an
-- earlier write, or {'refused', code, fact, fact …} if the verb is not allowed (see `refuse`).
--
-- Whole numbers are sent as text, because Lua would round large ones. A missing value is an empty
-- text. A *forecast* (--dry-run) returns what the verb would return, and writes nothing. A verb that
-- only reads is sent as a forecast, too.

local prefix = KEYS[1]
-- Whether an earlier attempt at this call may have succeeded: its reply was lost.
local is_repetition = ARGV[1] == '1'
local verb = ARGV[2]
local known_schema = ARGV[3]
local is_forecast = ARGV[4] == '1'
local once_key = ARGV[5]
local fingerprint = ARGV[6]
local lifetime = ARGV[7]
local fence_task = ARGV[8]
local fence_generation = ARGV[9]

-- The index of the first argument of the verb.
local FIRST = 10

-- How many tasks one call looks at. The server does nothing else meanwhile.
local MAX_LOOKED_AT = 500

-- How many values one call removes in passing.
local MAX_SWEPT = 20

-- How many exit codes of failed attempts a task keeps.
local MAX_EXIT_CODES = 20

-- The size of one page of a list.
local MAX_PAGE_BYTES = 1000000

local MAX_INTEGER = 9007199254740991

local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)


-- Return the name of a key of this store, made of these parts.
local function key(...)
  return table.concat({prefix, ...}, ':')
end

local function as_text(number)
  return string.format('%.0f', number)
end

-- Send a command that changes something. In a forecast, do nothing.
local function write(...)
  if not is_forecast then
    return redis.call(...)
  end
end

-- End this call with a refusal: a code, and the facts of the error (see _REFUSALS in redis.py).
local function refuse(code, ...)
  error({'refused', code, ...})
end


-- Tasks

-- Return a task with its fields, and three more: whether this is its last attempt, whether its lease
-- has expired, and its status at this moment.
local function load(id)
  local names = {'queue', 'body', 'status', 'generation', 'attempts', 'max', 'by', 'at', 'due',
    'position', 'ended', 'request', 'own_max', 'result', 'exits', 'tail', 'shown', 'place'}
  local values = redis.call('HMGET', key('task', id), unpack(names))
  if not values[1] then
    refuse('TASK_NOT_FOUND', id)
  end
  local task = {id = id}
  for index, name in ipairs(names) do
    task[name] = values[index] or ''
  end
  local max_attempts = tonumber(task.max)
  task.is_last_attempt = max_attempts > 0 and tonumber(task.attempts) >= max_attempts
  task.has_expired = task.status == 'claimed' and tonumber(task.due) <= now
  task.current_status = task.status
  if task.has_expired then
    task.current_status = task.is_last_attempt and 'failed' or 'expired'
  end
  return task
end

-- Refuse a claim that is not current. `generation` is the one that the caller has named.
local function refuse_claim(task, generation)
  refuse('LEASE_LOST', task.id, tonumber(generation), tonumber(task.generation),
    task.current_status)
end

-- Return the task of a claim, if the task is still at this generation.
local function load_claim(id, generation)
  local task = load(id)
  if task.generation ~= generation then
    refuse_claim(task, generation)
  end
  return task
end

-- Return the task of a claim that can be finished, or that was finished already.
local function load_finishable(id, generation)
  local task = load_claim(id, generation)
  if task.status ~= 'done' and task.status ~= 'claimed' then
    refuse_claim(task, generation)
  end
  return task
end

-- Remove a task from the list of its status.
local function unlist(task)
  if task.shown ~= '' then
    write('ZREM', key('status', task.shown), task.id)
    write('ZREM', key('status', task.shown, task.queue), task.id)
  end
end

-- List a task under this status, and change these fields of the task: name, value, name, value …
-- One command changes all fields, because each command of a call goes to the append-only file.
--
-- A task is listed as `claimed` until a claim notices that its lease has expired.
local function list_under(task, status, ...)
  if task.shown ~= status then
    unlist(task)
    write('ZADD', key('status', status), task.position, task.id)
    write('ZADD', key('status', status, task.queue), task.position, task.id)
  end
  write('HSET', key('task', task.id), 'shown', status, ...)
  task.shown = status
end

-- Let a task be claimed from this time on.
local function enqueue(queue, id, position, due)
  if due > now then
    write('ZADD', key('later', queue), as_text(due), id)
  else
    write('ZADD', key('free', queue), position, id)
  end
end

-- Remove a task from the one set of its queue that contains it. For a task that is claimed, this may
-- be `free`: a claim has moved the task there after its lease has expired.
local function dequeue(task)
  for _, set in ipairs({'leased', 'free', 'later', 'expired'}) do
    if write('ZREM', key(set, task.queue), task.id) == 1 then
      return
    end
  end
end

-- Return the ids in these sets whose time has come, up to MAX_LOOKED_AT of each.
local function find_due(queue, set)
  return redis.call('ZRANGEBYSCORE', key(set, queue), '-inf', now, 'LIMIT', 0, MAX_LOOKED_AT)
end

-- Move tasks whose delay or lease is over to `free`. A task that has failed leaves its set, and is
-- not moved to another one.
local function free_due(queue)
  for _, set in ipairs({'expired', 'later', 'leased'}) do
    for _, id in ipairs(find_due(queue, set)) do
      local task = load(id)
      write('ZREM', key(set, queue), id)
      if task.shown ~= task.current_status then
        list_under(task, task.current_status)
      end
      if task.current_status ~= 'failed' then
        write('ZADD', key('free', queue), task.position, id)
      end
    end
  end
end

-- Return the ids of up to `count` tasks that can be claimed, the oldest first.
local function find_claimable(queue, count)
  if count == 0 then
    -- ZRANGE would understand the index -1 as the last one.
    return {}
  end
  local ids = redis.call('ZRANGE', key('free', queue), 0, count - 1)
  if not is_forecast then
    return ids
  end
  -- A forecast has not moved the tasks that are due, so it has to look for them.
  local tasks = {}
  for _, id in ipairs(ids) do
    tasks[#tasks + 1] = load(id)
  end
  for _, set in ipairs({'expired', 'later', 'leased'}) do
    for _, id in ipairs(find_due(queue, set)) do
      local task = load(id)
      if task.current_status ~= 'failed' then
        tasks[#tasks + 1] = task
      end
    end
  end
  table.sort(tasks, function(one, other)
    return tonumber(one.position) < tonumber(other.position)
  end)
  local oldest = {}
  for index = 1, math.min(count, #tasks) do
    oldest[index] = tasks[index].id
  end
  return oldest
end


-- Lists

-- Return one page of a list: the rows, and the cursor to continue after, which is empty at the end.
--
-- `names` are the names of what may be in the list. `show(name)` returns a row (nil if it does not
-- belong into the list), its size, and its cursor. `next_cursor` is where to continue after all of
-- these names. By default, there are more names if there are MAX_LOOKED_AT of them.
local function page(names, limit, show, next_cursor)
  local rows = {}
  local bytes = 0
  local cursor = ''
  for _, name in ipairs(names) do
    local row, size
    row, size, cursor = show(name)
    if row then
      rows[#rows + 1] = row
      bytes = bytes + size
    end
    if #rows == tonumber(limit) or bytes > MAX_PAGE_BYTES then
      return {rows, cursor}
    end
  end
  if next_cursor then
    return {rows, next_cursor}
  end
  if #names < MAX_LOOKED_AT then
    cursor = ''
  end
  return {rows, cursor}
end


-- Values

-- Return the version that is stored, and the current one, which is 0 if the value has expired. Both
-- are 0 if there is no value. Refuse if the caller wants another current version.
local function versions(name, wanted)
  local found = redis.call('HMGET', key('state', name), 'version', 'ends')
  local stored = tonumber(found[1] or '0')
  local current = stored
  local ends = found[2] or ''
  if ends ~= '' and tonumber(ends) <= now then
    current = 0
  end
  if wanted ~= '' and tonumber(wanted) ~= current then
    refuse('VERSION_CONFLICT', name, tonumber(wanted), current)
  end
  return stored, current
end

-- Remove a value, and raise the floor above its version.
local function remove_value(name, version)
  if version > tonumber(redis.call('GET', key('floor')) or '0') then
    write('SET', key('floor'), as_text(version))
  end
  write('DEL', key('state', name))
  write('ZREM', key('keys'), name)
  write('ZREM', key('expiring'), name)
end

-- Remove a few values that have expired.
local function sweep_values(except)
  local expired = redis.call('ZRANGEBYSCORE', key('expiring'), '-inf', now, 'LIMIT', 0, MAX_SWEPT)
  for _, name in ipairs(expired) do
    if name ~= except then
      remove_value(name, tonumber(redis.call('HGET', key('state', name), 'version')))
    end
  end
end


-- The verbs. Each is called with its arguments, and returns the data of the reply.

local verbs = {}

function verbs.counter_add(name, amount)
  local found = redis.call('HGET', key('counters'), name)
  local before = tonumber(found or '0')
  local value = before + tonumber(amount)
  if math.abs(value) > MAX_INTEGER then
    refuse('COUNTER_RANGE', name, before, tonumber(amount))
  end
  write('HSET', key('counters'), name, as_text(value))
  write('ZADD', key('names'), 0, name)
  return {as_text(value), found and 'updated' or 'created'}
end

function verbs.counter_get(name)
  return redis.call('HGET', key('counters'), name) or '0'
end

function verbs.counter_list(after, limit)
  local rows = {}
  local names = redis.call('ZRANGEBYLEX', key('names'), '(' .. after, '+', 'LIMIT', 0, limit)
  for _, name in ipairs(names) do
    rows[#rows + 1] = {name, redis.call('HGET', key('counters'), name)}
  end
  return rows
end

function verbs.state_get(name)
  local found = redis.call('HMGET', key('state', name), 'value', 'version', 'ends')
  local value, version, ends = found[1], found[2], found[3]
  if not value or (ends ~= '' and tonumber(ends) <= now) then
    return {}
  end
  return {{name, value, version, ends}}
end

function verbs.state_list(start, after, limit)
  local from = '[' .. start
  if after >= start then
    from = '(' .. after
  end
  -- No text in UTF-8 contains this byte, so all names with this start come before it.
  local to = '(' .. start .. '\255'
  local names = redis.call('ZRANGEBYLEX', key('keys'), from, to, 'LIMIT', 0, MAX_LOOKED_AT)
  return page(names, limit, function(name)
    local row = verbs.state_get(name)[1]
    return row, row and #row[2], name
  end)
end

function verbs.state_set(name, value, wanted, expires)
  local stored, current = versions(name, wanted)
  local last = stored
  if last == 0 then
    last = tonumber(redis.call('GET', key('floor')) or '0')
  end
  local version = as_text(last + 1)
  local ends = ''
  if expires ~= '' then
    ends = as_text(now + tonumber(expires))
  end
  write('HSET', key('state', name), 'value', value, 'version', version, 'ends', ends)
  write('ZADD', key('keys'), 0, name)
  if ends == '' then
    write('ZREM', key('expiring'), name)
  else
    write('ZADD', key('expiring'), ends, name)
  end
  sweep_values(name)
  return {version, current > 0 and 'updated' or 'created'}
end

function verbs.state_unset(name, wanted)
  local stored, current = versions(name, wanted)
  remove_value(name, stored)
  return {as_text(current), current > 0 and 'deleted' or 'unchanged'}
end

-- The arguments after the queue are id, body, id, body …, delay, max_attempts. They are read from
-- ARGV, because a function of Lua cannot take so many.
function verbs.task_add(queue)
  local delay = tonumber(ARGV[#ARGV - 1])
  local max_attempts = ARGV[#ARGV]
  local rows = {}
  local new_tasks = {}
  for index = FIRST + 1, #ARGV - 2, 2 do
    local id, body = ARGV[index], ARGV[index + 1]
    local known = redis.call('HMGET', key('task', id), 'queue', 'body')
    if not known[1] then
      new_tasks[#new_tasks + 1] = {id = id, body = body}
      rows[#rows + 1] = {id, 'created'}
    elseif known[1] ~= queue or known[2] ~= body then
      refuse('TASK_CONFLICT', id)
    else
      rows[#rows + 1] = {id, 'unchanged'}
    end
  end
  -- Only now is it certain that all of them can be added.
  write('SADD', key('queues'), queue)
  for _, task in ipairs(new_tasks) do
    local position = write('INCR', key('position'))
    local due = ''
    if delay > 0 then
      due = as_text(now + delay)
    end
    write('HSET', key('task', task.id), 'queue', queue, 'body', task.body, 'status', 'free',
      'generation', '0', 'attempts', '0', 'max', '0', 'own_max', max_attempts, 'due', due,
      'position', position, 'shown', 'free')
    enqueue(queue, task.id, position, now + delay)
    write('ZADD', key('tasks'), position, task.id)
    write('ZADD', key('tasks', queue), position, task.id)
    write('ZADD', key('status', 'free'), position, task.id)
    write('ZADD', key('status', 'free', queue), position, task.id)
  end
  return rows
end

-- Return the tasks that this request has claimed, and that it still holds.
local function find_claimed(queue, request)
  local rows = {}
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', key('leased', queue), now + 1, '+inf')) do
    local task = load(id)
    if task.request == request then
      rows[#rows + 1] = {id, task.generation, task.body, task.attempts, task.due, ''}
    end
  end
  return rows
end

-- The arguments after these are task, generation, task, generation …: the claims to finish.
function verbs.task_claim(queue, worker, lease, count, max_attempts, request, is_repeated, place)
  local first_claim = FIRST + 8
  for index = first_claim, #ARGV, 2 do
    load_finishable(ARGV[index], ARGV[index + 1])
  end
  for index = first_claim, #ARGV, 2 do
    verbs.task_finish(ARGV[index], ARGV[index + 1], '')
  end
  if is_repeated == '1' then
    local already_claimed = find_claimed(queue, request)
    if #already_claimed > 0 then
      return already_claimed
    end
  end
  free_due(queue)
  local rows = {}
  local ends = as_text(now + tonumber(lease))
  for _, id in ipairs(find_claimable(queue, math.min(tonumber(count), MAX_LOOKED_AT))) do
    local task = load(id)
    local generation = as_text(task.generation + 1)
    local attempts = as_text(task.attempts + 1)
    local max = task.own_max ~= '' and task.own_max or max_attempts
    list_under(task, 'claimed', 'status', 'claimed', 'generation', generation,
      'attempts', attempts, 'max', max, 'by', worker, 'at', as_text(now), 'due', ends,
      'request', request, 'place', place ~= '' and place or task.place)
    write('ZREM', key('free', queue), id)
    write('ZADD', key('leased', queue), ends, id)
    rows[#rows + 1] = {id, generation, task.body, attempts, ends, task.place}
  end
  return rows
end

function verbs.task_renew(id, generation, lease)
  local task = load_claim(id, generation)
  -- If the clock of the server steps back, a lease can seem to be valid again. But its task may have
  -- been moved to `free`, where another worker can claim it.
  local is_leased = redis.call('ZSCORE', key('leased', task.queue), id)
  if task.current_status ~= 'claimed' or not is_leased then
    refuse_claim(task, generation)
  end
  local ends = as_text(now + tonumber(lease))
  write('HSET', key('task', id), 'due', ends)
  write('ZADD', key('leased', task.queue), ends, id)
  return ends
end

function verbs.task_finish(id, generation, result)
  local task = load_finishable(id, generation)
  if task.status == 'done' then
    return 'unchanged'
  end
  list_under(task, 'done', 'status', 'done', 'due', '', 'ended', as_text(now), 'result', result)
  dequeue(task)
  return 'updated'
end

-- Add the exit code of a failed attempt to its task, and store the end of the output.
local function add_exit_code(task, exit_code, tail)
  local codes = {}
  for code in string.gmatch(task.exits .. ' ' .. exit_code, '%S+') do
    codes[#codes + 1] = code
  end
  local first = math.max(1, #codes - MAX_EXIT_CODES + 1)
  write('HSET', key('task', task.id), 'exits', table.concat(codes, ' ', first), 'tail', tail)
end

function verbs.task_release(id, generation, delay, exit_code, tail, unused)
  local task = load_claim(id, generation)
  if task.status == 'done' then
    refuse_claim(task, generation)
  end
  if task.status ~= 'claimed' then
    return 'unchanged'
  end
  if exit_code ~= '' then
    add_exit_code(task, exit_code, tail)
  end
  dequeue(task)
  local is_unused = unused == '1'
  if task.is_last_attempt and not is_unused then
    list_under(task, 'failed', 'status', 'failed', 'by', '', 'at', '', 'due', '',
      'ended', as_text(now))
    return 'updated'
  end
  local due = now + tonumber(delay)
  local attempts = is_unused and as_text(task.attempts - 1) or task.attempts
  list_under(task, 'free', 'status', 'free', 'by', '', 'at', '',
    'due', due > now and as_text(due) or '', 'ended', '', 'attempts', attempts)
  enqueue(task.queue, id, task.position, due)
  return 'updated'
end

-- Return the row of a task, as _to_task_state in store.py expects it.
local function to_row(task)
  return {task.id, task.queue, task.current_status, task.generation, task.attempts, task.by,
    task.at, task.due, task.position, task.body}
end

-- Return up to `count` tasks that follow a position in a set: their ids and positions.
local function find_after(set, after, newest, count)
  local command, from, to = 'ZRANGEBYSCORE', '(' .. after, '+inf'
  if newest == '1' then
    command, from, to = 'ZREVRANGEBYSCORE', after == '0' and '+inf' or '(' .. after, '-inf'
  end
  local flat = redis.call(command, set, from, to, 'WITHSCORES', 'LIMIT', 0, count)
  local found = {}
  for index = 1, #flat, 2 do
    found[#found + 1] = {id = flat[index], position = tonumber(flat[index + 1])}
  end
  return found
end

-- Return the ids of tasks that `find_after` has returned.
local function ids_of(tasks)
  local ids = {}
  for index, task in ipairs(tasks) do
    ids[index] = task.id
  end
  return ids
end

-- Return the ids that may have a status, sorted by position, and where to continue after them (empty
-- at the end).
--
-- These are the tasks that are listed under the status. A task whose lease has expired may still be
-- listed as claimed, so look at those, too: they are few.
--
-- A page needs up to `count` tasks. A task that is listed as claimed may have another status, so look
-- at more of these. All other tasks have the status that they are listed under, so `count` is enough.
local function find_with_status(queue, status, after, newest, count)
  local sets = {status}
  if status == 'expired' or status == 'failed' then
    sets = {status, 'claimed'}
  end
  local found = {}
  local end_of_page = nil
  local function is_before(one, other)
    if newest == '1' then
      return one > other
    end
    return one < other
  end
  for _, name in ipairs(sets) do
    local set = key('status', name)
    if queue ~= '' then
      set = key('status', name, queue)
    end
    local size = count
    if name == 'claimed' then
      size = MAX_LOOKED_AT
    end
    local listed = find_after(set, after, newest, size)
    for _, one in ipairs(listed) do
      found[#found + 1] = one
    end
    -- There may be more in this set. What follows its last one in another set has to wait.
    local last = listed[size]
    if last and (not end_of_page or is_before(last.position, end_of_page)) then
      end_of_page = last.position
    end
  end
  table.sort(found, function(one, other) return is_before(one.position, other.position) end)
  local ids = {}
  for _, one in ipairs(found) do
    if not end_of_page or not is_before(end_of_page, one.position) then
      ids[#ids + 1] = one.id
    end
  end
  return ids, end_of_page and as_text(end_of_page) or ''
end

-- Return whether all tasks are listed under their status.
local function is_migrated()
  return redis.call('GET', key('migrated')) == 'done'
end

function verbs.task_list(queue, status, after, limit, newest)
  local ids
  local next_cursor = nil
  local count = math.min(tonumber(limit), MAX_LOOKED_AT)
  if status ~= '' and is_migrated() then
    ids, next_cursor = find_with_status(queue, status, after, newest, count)
  else
    if status ~= '' then
      -- It is not known how many of these tasks have the status.
      count = MAX_LOOKED_AT
    end
    local all = key('tasks')
    if queue ~= '' then
      all = key('tasks', queue)
    end
    ids = ids_of(find_after(all, after, newest, count))
  end
  return page(ids, limit, function(id)
    local task = load(id)
    local row = nil
    if status == '' or status == task.current_status then
      row = to_row(task)
    end
    return row, #task.body, task.position
  end, next_cursor)
end

-- Return a queue, a status and a count in each row.
function verbs.task_stats(queue)
  local queues = {queue}
  if queue == '' then
    queues = redis.call('SMEMBERS', key('queues'))
  end
  local rows = {}
  for _, name in ipairs(queues) do
    local counts = {}
    for _, status in ipairs({'free', 'claimed', 'expired', 'done', 'failed', 'cancelled'}) do
      counts[status] = redis.call('ZCARD', key('status', status, name))
    end
    for _, id in ipairs(redis.call('ZRANGEBYSCORE', key('leased', name), '-inf', now)) do
      local status = load(id).current_status
      counts.claimed = counts.claimed - 1
      counts[status] = counts[status] + 1
    end
    for status, count in pairs(counts) do
      if count > 0 then
        rows[#rows + 1] = {name, status, as_text(count)}
      end
    end
  end
  return rows
end

-- List some more tasks of a store of version 0.2 under their status. Return whether all are listed.
function verbs.migrate()
  local reached = redis.call('GET', key('migrated'))
  if reached == 'done' then
    return 'done'
  end
  reached = reached or '0'
  local found = find_after(key('tasks'), reached, '0', MAX_LOOKED_AT)
  for _, one in ipairs(found) do
    local task = load(one.id)
    list_under(task, task.current_status)
    write('SADD', key('queues'), task.queue)
    reached = task.position
  end
  if #found < MAX_LOOKED_AT then
    reached = 'done'
  end
  write('SET', key('migrated'), reached)
  return reached
end

function verbs.task_show(id)
  local task = load(id)
  local row = to_row(task)
  row[#row + 1] = task.own_max ~= '' and task.own_max or task.max
  row[#row + 1] = task.result
  row[#row + 1] = task.exits
  row[#row + 1] = task.tail
  return row
end

function verbs.task_left(queue, limit)
  local count = 0
  for _, set in ipairs({'free', 'expired', 'later', 'leased'}) do
    count = count + redis.call('ZCARD', key(set, queue))
  end
  -- A task that has failed because its last lease expired stays in `leased` until the next claim.
  for _, id in ipairs(find_due(queue, 'leased')) do
    if load(id).current_status == 'failed' then
      count = count - 1
    end
  end
  return as_text(math.min(count, tonumber(limit)))
end

function verbs.task_retry(id)
  local task = load(id)
  if task.current_status == 'free' then
    return 'unchanged'
  end
  if task.current_status ~= 'failed' then
    refuse('TASK_NOT_FAILED', id, task.current_status)
  end
  list_under(task, 'free', 'status', 'free', 'attempts', '0', 'due', '', 'by', '', 'at', '',
    'ended', '', 'generation', as_text(task.generation + 1))
  dequeue(task)
  enqueue(task.queue, id, task.position, 0)
  return 'updated'
end

-- The failed tasks of a queue: the ones that are listed as failed, and the ones that are still listed
-- as claimed although their last lease has expired.
function verbs.task_retry_all(queue, limit)
  local ids = redis.call('ZRANGE', key('status', 'failed', queue), 0, limit - 1)
  for _, id in ipairs(find_due(queue, 'leased')) do
    if #ids < tonumber(limit) and load(id).current_status == 'failed' then
      ids[#ids + 1] = id
    end
  end
  for _, id in ipairs(ids) do
    verbs.task_retry(id)
  end
  return as_text(#ids)
end

function verbs.task_cancel(id)
  local task = load(id)
  local status = task.current_status
  if status == 'cancelled' then
    return 'unchanged'
  end
  if status == 'done' or status == 'failed' then
    refuse('TASK_ENDED', id, status)
  end
  -- The new generation ends the claim, if there is one.
  list_under(task, 'cancelled', 'status', 'cancelled', 'due', '', 'by', '', 'at', '',
    'ended', as_text(now), 'generation', as_text(task.generation + 1))
  dequeue(task)
  return 'updated'
end

local function remove_task(task)
  for _, known in ipairs(redis.call('SMEMBERS', key('fenced', task.id))) do
    write('DEL', key('once', known))
  end
  unlist(task)
  write('DEL', key('task', task.id), key('fenced', task.id))
  dequeue(task)
  write('ZREM', key('tasks', task.queue), task.id)
  write('ZREM', key('tasks'), task.id)
end

function verbs.task_clean(older, statuses, after, limit)
  local removed = 0
  local ids = redis.call('ZRANGEBYSCORE', key('tasks'), '(' .. after, '+inf', 'LIMIT', 0, limit)
  for _, id in ipairs(ids) do
    local task = load(id)
    after = task.position
    -- A task has no time when it ended if its last lease expired. That was when it was due.
    local ended = tonumber(task.ended) or tonumber(task.due) or tonumber(task.at) or 0
    local has_status = string.find(statuses, task.current_status, 1, true)
    if has_status and ended <= now - tonumber(older) then
      remove_task(task)
      removed = removed + 1
    end
  end
  if #ids < tonumber(limit) then
    after = '0'
  end
  return {as_text(removed), after}
end


-- The call

-- Refuse a store with a newer schema. Mark a store with an older one, so that an older version of
-- this program does not change it any more.
local function check_schema()
  local found = redis.call('GET', key('schema'))
  if found and tonumber(found) > tonumber(known_schema) then
    refuse('STATE_TOO_NEW', tonumber(found))
  end
  if found ~= known_schema then
    write('SET', key('schema'), known_schema)
  end
end

-- Refuse a fenced write whose claim is no longer current.
local function check_fence()
  if fence_task == '' then
    return
  end
  local task = load_claim(fence_task, fence_generation)
  if task.status ~= 'claimed' then
    refuse_claim(task, fence_generation)
  end
end

-- Return an earlier write with the same key, or nil if there is none.
local function find_write()
  if once_key == '' then
    return nil
  end
  local found = redis.call('HMGET', key('once', once_key), 'digest', 'answer', 'generation')
  if not found[1] then
    return nil
  end
  local is_by_this_claim = fence_task ~= '' and found[3] == fence_generation
  return {fingerprint = found[1], answer = found[2], is_by_this_claim = is_by_this_claim}
end

-- Return the remembered result of an earlier write. Refuse a repetition with other arguments.
--
-- A claim with another generation is a new execution of the task. It need not agree with the earlier
-- one: what an agent writes, for example, differs each time.
local function replay(earlier)
  local must_agree = fence_task == '' or earlier.is_by_this_claim
  if must_agree and earlier.fingerprint ~= fingerprint then
    refuse('IDEMPOTENCY_KEY_REUSED')
  end
  return cjson.decode(earlier.answer)
end

local function remember(data)
  if once_key == '' then
    return
  end
  write('HSET', key('once', once_key), 'digest', fingerprint, 'answer', cjson.encode(data),
    'generation', fence_generation)
  if lifetime ~= '' then
    write('PEXPIRE', key('once', once_key), lifetime)
  else
    write('SADD', key('fenced', fence_task), once_key)
  end
end

local function call()
  check_schema()
  local earlier = find_write()
  -- If an earlier attempt has made this write, its result counts, although the claim may have ended
  -- since. The store would refuse a write that has certainly happened.
  local is_own_write = earlier ~= nil and earlier.is_by_this_claim
  if not (is_repetition and is_own_write) then
    check_fence()
  end
  if earlier ~= nil then
    return {'replayed', replay(earlier)}
  end
  -- No verb has more than eight arguments of its own. Those of a list are read from ARGV.
  local data = verbs[verb](unpack(ARGV, FIRST, math.min(#ARGV, FIRST + 7)))
  remember(data)
  return {'done', data}
end

-- The reply of a refusal comes as the error that `refuse` has raised.
local _, reply = pcall(call)
if type(reply) ~= 'table' then
  -- A mistake in this script, or an error of the server.
  return redis.error_reply(reply)
end
return reply
