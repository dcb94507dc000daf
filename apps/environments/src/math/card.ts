export const readme = `# math

One question, one answer, checked exactly. 24 families of questions, made from the task's seed.

| level | questions |
|---|---|
| 1 | sums, products, percentages, adding fractions |
| 2 | fractions, linear equations, means, multiples |
| 3 | systems of equations, remainders of powers, derivatives, drawing balls, sums with remainders |
| 4 | roots, areas, two remainders, committees, dice |
| 5 | several steps: conditional probability, random walks, lattice paths, filling a tank, three sets |

| tool | input | result |
|---|---|---|
| \`submit\` | \`answer\`: an integer, a fraction \`7/4\` or a decimal \`1.75\` | reward 1 when equal as a number, else 0; ends the episode |

**Tasks.** \`{"id": "train-0", "level": 1, "seed": 0}\`: 1,000 for training, 200 for validation, 200 for test, levels in turn. No
question of one split is in another.
`;
