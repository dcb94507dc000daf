export const readme = `# bench

Costs nothing itself, so that what is measured is the server around it. One action, any number of times:

| action | observation |
|---|---|
| \`{"wait_seconds": 1.0}\`, 0 to 600, default 0 | \`waited_seconds\`, \`pid\`, \`session_hash\`, \`host_url\`, \`step_count\`; reward 0, never done |

The fields are those of the environment with which OpenEnv publishes its scaling figures.
`;
