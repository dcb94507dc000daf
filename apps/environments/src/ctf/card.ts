export const readme = `# CTF

Capture the flag in a small machine room of its own: file trees, notes that were encoded or encrypted, and from level 4 a
network of machines that let nobody in without a password. Nothing of it is real; no command leaves the environment.

| level | where the flag is |
|---|---|
| 1 | in a hidden file |
| 2 | encoded twice; a note says how |
| 3 | encrypted; the key is in somebody's mail |
| 4 | as 2, on another machine; its password is encoded in a note |
| 5 | as 3, two machines further; the last password is encrypted on the way |

Tools: \`ls\`, \`cat\`, \`decode\`, \`scan\`, \`login\`, \`submit\`.

**Reward.** 0.1 for the first login to each machine, the rest of 1.0 for the flag. The third wrong flag ends the episode.

**Tasks.** \`{"id": "train-0", "level": 1, "seed": 0}\`: 300 for training, 50 for validation, 50 for test, levels in turn.
A task of your own may have \`"faults": {"decode": "error", "scan": "hang"}\`: these tools answer with an error, or never.
`;
