export const readme = `# WhoDunit

A murder in a country house, made from a seed. Find out **who** did it, with **what** and **where**.

* By level: 3 suspects and 3 rooms, 4 and 3, 4 and 4, 5 and 4; six weapons.
* At nine the murderer was alone with the victim in the room of the murder; everybody else was in another room.
* Witnesses lie by rule: the murderer lies in every statement, those with a certain habit (the task names it and them) lie
  in every statement, all others always tell the truth. Exactly one suspect fits everything that is said.
* The room of the murder has fresh blood. The weapon matches the wound and was freshly washed; another washed one does not match.

| tool | input | what it gives |
|---|---|---|
| \`interview\` | \`suspect\` | three statements, all true or all false |
| \`search\` | \`room\` | blood, weapons and whether they were washed |
| \`check_alibi\` | \`suspect\` | whether the suspect told the truth about their own whereabouts; two per game |
| \`accuse\` | \`suspect\`, \`weapon\`, \`room\` | the verdict; ends the game |

**Reward.** 0.05 for the search that finds the blood, 0.05 for the one that finds the weapon, 0.9 for a completely correct accusation:
0.5 for the murderer, 0.2 more for the weapon and 0.2 for the room. With the wrong suspect weapon and room give 0.05 each.

**Turns.** Ten, as the prompt says, the accusation included. Every call is one, also with a name that does not exist; calls with
invalid arguments do not count. They are enough to search every room, hear every suspect and accuse; who finds blood and weapon
early has turns left for alibis. The tenth call ends the game.

**Tasks.** \`{"id": "train-0", "level": 1, "seed": 0}\`: 2,000 for training, 200 for validation, 200 for test, levels in turn, no
seed in two of them. Every task is proved to be solvable: a player that only reads the texts finds the one culprit in ten turns.
`;
