export const readme = `# coding_env

OpenEnv's coding environment, by its wire shape. It has one task without content, \`{}\`: the prompt comes from your data set.

| action | observation |
|---|---|
| \`{"code": "print(1 + 1)"}\` | \`{"stdout": "2\\n", "stderr": "", "exit_code": 0}\` |

Never done. What a program defines is there for the next one of the episode. Shown is what was printed, not the value of the last line.

**Reward**, by the text alone: -1 if it has one of \`import os\`, \`import subprocess\`, \`eval(\`, \`exec(\`, \`__import__\`, \`open(\` (the metadata says
which: \`safety_violation\`), plus 0.1 for at most 100 characters, minus 0.2 for what does not parse.

**Isolation.** Python 3.14 compiled to WebAssembly (Pyodide), one interpreter per episode in a process of its own: no environment variables, no files but the
interpreter's, no network, no threads, no other processes. Around it are Linux namespaces (bubblewrap) where the machine offers them, else Node's permission model and the
kernel's limits; the status above says which. Standard library only.

| limit | what happens |
|---|---|
| 5 s of the processor a program, 12 s by the clock | exit code 124, a new interpreter |
| 256 MiB of memory | MemoryError; beyond what Python can notice: exit code 137, a new interpreter |
| 64 MiB written to files in an episode | OSError |
| 50,000 characters of each stream | the rest is cut |
| as many programs at a time as there are cores | the others wait |
`;
