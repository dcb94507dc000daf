export const readme = `# echo

The smallest environment there is. 1,000 training tasks \`{"id": 0}\` to \`{"id": 999}\`; one tool.

| tool | input | result |
|---|---|---|
| \`echo\` | \`text\` | the text, reward 0.1, never finished |

Use it to try a client, or to measure what a session costs: the environment itself costs nothing.
`;
