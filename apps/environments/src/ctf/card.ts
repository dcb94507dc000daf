export const readme = `# CTF

Capture the flag in a simulated machine room: file trees, encoded or encrypted notes, and from level 4 on a second machine
that needs a password. No command leaves the environment.

| level | where the flag is | calls needed |
|---|---|---|
| 1 | in a hidden file | 3 |
| 2 | encoded twice; a note says how | 6 |
| 3 | encrypted; the key is in somebody's mail | 5 |
| 4 | in a hidden file of another machine; its password is encoded in a note | 7 |
| 5 | encoded, on another machine; its password is encrypted, and the key is in somebody's mail | 9 |

Tools: \`ls\`, \`cat\`, \`decode\`, \`scan\`, \`login\`, \`submit\`. An episode has ten turns, as the prompt says. Each call is one; calls with
invalid arguments do not count.

**Reward.** On the way, each once: 0.05 for reading a file that leads on (a note, the mail with the key, the hidden file), 0.1 for
decoding a password or the flag with \`decode\`, 0.15 for the first login to a machine. The right flag gives what is left to 1. The
third wrong flag ends the episode.

**Tasks.** \`{"id": "train-0", "level": 1, "seed": 0}\`: 300 for training, 50 for validation, 50 for test, levels in turn.
A task of your own may have \`"faults": {"decode": "error", "scan": "hang"}\`: these tools answer with an error, or never.
`;
