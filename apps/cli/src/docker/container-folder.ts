import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir, userInfo } from 'node:os';
import path from 'node:path';

export interface ContainerRecord {
  id: string;
  name: string;
  image: string;
  /** `owner/name` */
  environment: string;
  /** The port of localhost on which the forwarder listens. */
  port: number;
  pid: number;
}

/** The running containers, one file each, in a folder that only this user can read. It contains no keys. */
export class ContainerFolder {
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  /** Opens the folder below XDG_RUNTIME_DIR, else below the temporary folder. Throws if it belongs to another user. */
  static async open(env: NodeJS.ProcessEnv): Promise<ContainerFolder> {
    const { uid, username } = userInfo();
    const base = env['XDG_RUNTIME_DIR'] || tmpdir();
    const folder = path.join(base, `palestra-docker-${uid < 0 ? username : uid}`);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const { uid: owner, mode } = await stat(folder);
    if (uid >= 0 && (owner !== uid || (mode & 0o077) !== 0)) throw new Error(`${folder} must belong to you, with permissions 0700.`);
    return new ContainerFolder(folder);
  }

  async add(record: ContainerRecord): Promise<void> {
    const file = this.#file(record.id);
    await writeFile(`${file}.new`, JSON.stringify(record), { mode: 0o600 });
    await rename(`${file}.new`, file);
  }

  async remove(id: string): Promise<void> {
    await rm(this.#file(id), { force: true });
  }

  /** Finds a container by id, by a prefix of its id, or by name. */
  async find(reference: string): Promise<ContainerRecord | null> {
    const records = await this.#all();
    return records.find(({ id, name }) => name === reference || (reference.length >= 4 && id.startsWith(reference))) ?? null;
  }

  async #all(): Promise<ContainerRecord[]> {
    const files = (await readdir(this.#folder)).filter((file) => file.endsWith('.json'));
    const records = await Promise.all(files.map((file) => readFile(path.join(this.#folder, file), 'utf8').then(parse, () => null)));
    return records.filter((record) => record !== null);
  }

  #file(id: string): string {
    return path.join(this.#folder, `${id}.json`);
  }
}

/** Returns null for an incomplete file or a record of another version. */
function parse(text: string): ContainerRecord | null {
  try {
    const record = JSON.parse(text) as Partial<ContainerRecord> | null;
    return typeof record?.id === 'string' && typeof record.name === 'string' && Number.isInteger(record.port)
      ? (record as ContainerRecord)
      : null;
  } catch {
    return null;
  }
}
