export const readme = `# math

One question, one answer, checked exactly: fractions, equations, roots, remainders, multiples, derivatives, probabilities,
counting. Questions are made from the task's seed.

| tool | input | result |
|---|---|---|
| \`submit\` | \`answer\`: an integer, a fraction \`7/4\` or a decimal \`1.75\` | reward 1 when equal as a number, else 0; ends the episode |

**Tasks.** \`{"id": "train-0", "seed": 0}\`: 1,000 for training, 200 for validation, 200 for test, no seed in two of them.
`;
