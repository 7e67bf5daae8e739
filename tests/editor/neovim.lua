-- What a person does in Neovim, done without a screen: run by `nvim --headless -S`.
-- The command of the server is in ENSUE_LSP, the file in ENSUE_FILE, what was seen goes to ENSUE_SEEN.
-- Works from Neovim 0.7 on, so that the package of Debian will do.
local seen = {}
local cmd = vim.fn.json_decode(os.getenv("ENSUE_LSP"))
local unpacked = table.unpack or unpack

local function until_true(what, condition)
  if not vim.wait(30000, condition, 20) then
    error("waited in vain for " .. what)
  end
end

local function cursor_at(pattern, offset)
  vim.api.nvim_win_set_cursor(0, { 1, 0 })
  assert(vim.fn.search(pattern, "c") > 0, pattern)
  local row, column = unpacked(vim.api.nvim_win_get_cursor(0))
  vim.api.nvim_win_set_cursor(0, { row, column + offset })
end

local function replace(from, to)
  local lines = vim.api.nvim_buf_get_lines(0, 0, -1, true)
  for number, line in ipairs(lines) do
    local begin, stop = line:find(from, 1, true)
    if begin then
      lines[number] = line:sub(1, begin - 1) .. to .. line:sub(stop + 1)
      vim.api.nvim_buf_set_lines(0, number - 1, number, true, { lines[number] })
      return
    end
  end
  error("there is no " .. from)
end

local function text()
  return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, true), "\n")
end

local function labels()
  local params = vim.lsp.util.make_position_params(0, "utf-16")
  local answers = vim.lsp.buf_request_sync(0, "textDocument/completion", params, 30000)
  local found = {}
  for _, answer in pairs(answers) do
    for _, item in ipairs(answer.result.items or answer.result) do
      table.insert(found, item.label)
    end
  end
  return found
end

local function floating()
  for _, window in ipairs(vim.api.nvim_list_wins()) do
    if vim.api.nvim_win_get_config(window).relative ~= "" then
      return table.concat(vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(window), 0, -1, true), "\n")
    end
  end
end

local function story()
  vim.cmd("edit " .. vim.fn.fnameescape(os.getenv("ENSUE_FILE")))
  local buffer = vim.api.nvim_get_current_buf()
  local client = vim.lsp.start_client({
    name = "ensue",
    cmd = cmd,
    root_dir = vim.fn.fnamemodify(os.getenv("ENSUE_FILE"), ":h"),
  })
  vim.lsp.buf_attach_client(buffer, client)

  until_true("mistakes", function()
    return #vim.diagnostic.get(buffer) > 0
  end)
  local first = vim.diagnostic.get(buffer)[1]
  seen.diagnostic = { code = first.code, line = first.lnum + 1, message = first.message }
  replace("goood", "good")
  until_true("no mistakes", function()
    return #vim.diagnostic.get(buffer) == 0
  end)

  cursor_at("good.user", 5)
  replace("good.user", "good.")
  seen.completion = labels()
  replace("good. }", "good.user }")

  cursor_at("Guessed", 2)
  vim.lsp.buf.hover()
  until_true("a window", floating)
  seen.hover = floating()
  vim.cmd("silent! fclose")

  cursor_at("Failed bad", 2)
  vim.lsp.buf.definition()
  until_true("a jump", function()
    return vim.api.nvim_get_current_line():find("eventtype Failed", 1, true)
  end)
  seen.definition = vim.api.nvim_get_current_line()

  cursor_at("bad where", 1)
  vim.lsp.buf.rename("wrong")
  until_true("another name", function()
    return text():find("sum(wrong.tries)", 1, true)
  end)
  seen.renamed = text()

  if vim.lsp.buf.format then
    vim.lsp.buf.format({ async = false, timeout_ms = 30000 })
  else
    vim.lsp.buf.formatting_sync(nil, 30000)
  end
  seen.formatted = text()
  until_true("no mistakes at the end", function()
    return #vim.diagnostic.get(buffer) == 0
  end)
end

local good, problem = pcall(story)
if not good then
  seen.problem = problem
end
local file = io.open(os.getenv("ENSUE_SEEN"), "w")
file:write(vim.fn.json_encode(seen))
file:close()
vim.cmd("qall!")
