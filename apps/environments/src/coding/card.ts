export const readme = `# coding

Programming tasks with hidden tests, next to the empty \`coding_env\`. The prompt states a function \`solve\` with examples, limits of
the input and the turn budget. Programs run in the sandbox of \`coding_env\`: Python 3.14, standard library, no network.

| tool | input | result |
|---|---|---|
| \`run\` | \`code\` | exit code, output and errors; names stay for the next run; at most nine runs |
| \`submit\` | \`code\` | number of hidden tests passed; ends the episode |

**Reward.** 1 if all hidden tests pass, else half of the share that passes: 0.5 × passed / tests. \`run\` has no reward.

**Tasks.** 492 exercises of 37 families: texts, parsing, formatting, lists, intervals, graphs, trees, dynamic programming, number theory,
matrices, bits, state machines, simulations, tables. \`{"id": "train-0", "family": "routes", "variant": 3, "level": 4}\`; levels 1 to 5.
Each exercise has its own rules, and is in one split only. Hidden tests have edge cases and the largest inputs: a program whose
time grows with the square of the input mostly runs out of time (2 s of the processor per test).

**Verified.** Each exercise has two independent solutions, one of which computes the expected results outside of the sandbox, and
programs with typical mistakes that fail. A test gets only its arguments: no expected value is ever in the process of the program.
`;
