import { SeededRandom } from '@palestra/environment-kit';
import { encode, type Method } from './ciphers.ts';

/** A machine: its files by absolute path, and its password. */
export interface Machine {
  name: string;
  password: string | null;
  files: Map<string, string>;
  /** Machines that are reachable from here. */
  neighbours: string[];
  /** Files that lead to its secret: a note, a mail, the hidden file. */
  clues: Set<string>;
  /** What its clues lead to: the password of the next machine, or the flag. */
  secret: string;
}

export interface Room {
  level: number;
  flag: string;
  /** The player's first machine. */
  start: string;
  machines: Map<string, Machine>;
}

export const LEVELS = 5;

const USERS = ['ada', 'grace', 'linus', 'margaret', 'dennis', 'barbara', 'ken', 'radia'];
const PETS = ['pixel', 'biscuit', 'nimbus', 'marmalade', 'sprocket', 'tofu', 'gizmo', 'pepper'];
const HOSTS = ['atlas', 'borealis', 'cygnus', 'draco', 'electra', 'fornax'];
const WORDS = ['amber', 'falcon', 'granite', 'harbor', 'juniper', 'lantern', 'meadow', 'nectar', 'orchid', 'quartz', 'saffron', 'walnut'];
const FOLDERS = ['/var/backups', '/opt/legacy', '/srv/share', '/usr/local/etc', '/var/spool/mail', '/home/guest'];
const CHATTER = [
  'Printer on floor two is out of toner again.',
  'Lunch moved to 12:30, bring your own fork.',
  'rsync finished without errors, 1482 files.',
  'Do not reboot before the auditors have left.',
  'TODO: delete this file.',
];

/** Encodings without a key, applied one after the other. */
const ENCODINGS: Method[] = ['base64', 'hex', 'rot13', 'reverse'];

/**
 * Creates the room of a seed. Level 1: the flag is in a hidden file. 2: encoded twice. 3: encrypted, with the key in a mail. 4: in a hidden
 * file of another machine, whose password is encoded in a note. 5: encoded in a note of another machine, whose password is encrypted.
 */
export function makeRoom(level: number, seed: number): Room {
  const random = new SeededRandom('ctf', level, seed);
  const names = random.sample(HOSTS, level < 4 ? 1 : 2);
  const machines = names.map((name, index) => makeMachine(random, name, index === 0 ? null : password(random)));
  machines.forEach((machine, index) => {
    machine.neighbours = [names[index - 1], names[index + 1]].filter((name) => name !== undefined);
  });
  const flag = `flag{${random.sample(WORDS, 3).join('-')}-${random.integer(1000, 9999)}}`;
  const [first, last] = [machines[0]!, machines.at(-1)!];
  if (level === 4) noteEncoded(random, first, `The password of ${last.name}`, last.password!);
  if (level === 5) hideEncrypted(random, first, `The password of ${last.name}`, last.password!);
  if (level === 1 || level === 4) hidePlainly(random, last, flag);
  else if (level === 2) hideEncoded(random, last, 'The flag', flag);
  else if (level === 3) hideEncrypted(random, last, 'The flag', flag);
  else noteEncoded(random, last, 'The flag', flag);
  return { level, flag, start: names[0]!, machines: new Map(machines.map((machine) => [machine.name, machine])) };
}

const password = (random: SeededRandom): string => `${random.sample(WORDS, 2).join('-')}-${random.integer(10, 99)}`;

function makeMachine(random: SeededRandom, name: string, secret: string | null): Machine {
  const files = new Map([['/etc/motd', `Welcome to ${name}. Authorised users only.`]]);
  for (const folder of random.sample(FOLDERS, 4)) files.set(`${folder}/${random.pick(WORDS)}.log`, random.pick(CHATTER));
  return { name, password: secret, files, neighbours: [], clues: new Set(), secret: '' };
}

function hiddenPath(random: SeededRandom): string {
  return `${random.pick(FOLDERS)}/.${random.pick(WORDS)}/${random.pick(WORDS)}.dat`;
}

/** Adds files that lead to the machine's secret. */
function addClues(machine: Machine, secret: string, files: [path: string, text: string][]): void {
  machine.secret = secret;
  for (const [path, text] of files) {
    machine.files.set(path, text);
    machine.clues.add(path);
  }
}

function hidePlainly(random: SeededRandom, machine: Machine, secret: string): void {
  addClues(machine, secret, [[hiddenPath(random), `Nobody looks here: ${secret}`]]);
}

/** Encoded once, in the note itself. */
function noteEncoded(random: SeededRandom, machine: Machine, what: string, secret: string): void {
  const method = random.pick(ENCODINGS);
  addClues(machine, secret, [[`/home/${random.pick(USERS)}/notes.txt`, `${what}: ${encode(secret, method)}\nTo read it, undo ${method}.`]]);
}

function hideEncoded(random: SeededRandom, machine: Machine, what: string, secret: string): void {
  const methods = random.sample(ENCODINGS, 2);
  const path = hiddenPath(random);
  const user = random.pick(USERS);
  addClues(machine, secret, [
    [path, methods.reduce((text, method) => encode(text, method), secret)],
    [`/home/${user}/notes.txt`, `${what} is in ${path}. To read it, undo ${methods.toReversed().join(', then ')}.`],
  ]);
}

function hideEncrypted(random: SeededRandom, machine: Machine, what: string, secret: string): void {
  const [owner, friend] = random.sample(USERS, 2) as [string, string];
  const pet = random.pick(PETS);
  const encrypted = encode(secret, 'vigenere', pet);
  const mail = `From: ${friend}\nSubject: vet\n\nI cannot come on Friday, my cat ${pet} has an appointment.`;
  addClues(machine, secret, [
    [`/home/${owner}/reminder.txt`, `${what}: ${encrypted}\nIt is vigenere. The key is the name of ${friend}'s cat.`],
    [`/home/${friend}/mail.txt`, mail],
  ]);
}
