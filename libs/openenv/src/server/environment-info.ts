import { type JsonObject, PalestraError, type Split, type TaskSpec, type ToolsAnswer, type ToolSpec } from '@palestra/protocol';
import { type Backend, listAllTasks, type HostedEnvironment } from '@palestra/session';
import { openEnvUpstreamOf, type OpenEnvUpstream } from '../wire/native.ts';
import { actionSchema, classNameOf, toolSchema } from '../wire/schemas.ts';

/** What OpenEnv clients can read about an environment before an episode. */
export interface EnvironmentShape {
  mode: 'simulation' | 'production';
  /** Its server speaks OpenEnv, so messages are passed through. */
  native: boolean;
  /** true: actions call tools by name. false: an action is an object of the published schema. */
  toolActions: boolean;
  className: string;
  /** Answers of `GET /schema` and `GET /metadata`. */
  schema: JsonObject;
  metadata: JsonObject;
  /** JSON text of the tools that every task has. */
  tools: string;
  toolSpecs: ToolSpec[];
}

/** The only tool of an action environment (docs/adr/0020). */
export const ACTION_TOOL = 'step';
const TTL_MS = 30_000;
const DEADLINE_MS = 50_000;

const NO_ARGUMENTS: JsonObject = { type: 'object', properties: {} };

/** The tools that a client can call, with the terminal tool, for which OpenEnv has no field. */
export function listedTools({ tools, terminal_tool: terminal }: ToolsAnswer): ToolSpec[] {
  if (!terminal || tools.some(({ name }) => name === terminal.name)) return tools;
  const schema = terminal.arg === null ? NO_ARGUMENTS : { type: 'object', properties: { [terminal.arg]: {} }, required: [terminal.arg] };
  return [...tools, { name: terminal.name, description: terminal.description, input_schema: schema }];
}

export const toolsText = (tools: ToolSpec[]): string =>
  JSON.stringify(tools.map(({ name, description, input_schema: schema }) => ({ name, description, input_schema: schema ?? NO_ARGUMENTS })));

class ExpiringCache<T> {
  readonly #values = new Map<string, { value: Promise<T>; until: number }>();

  get(key: string, load: () => Promise<T>): Promise<T> {
    const known = this.#values.get(key);
    if (known !== undefined && known.until > Date.now()) return known.value;
    const value = load();
    const entry = { value, until: Date.now() + TTL_MS };
    this.#values.set(key, entry);
    value.catch(() => this.#values.get(key) === entry && this.#values.delete(key));
    return value;
  }
}

/** Caches the answers of a backend that many resets need for 30 s. */
export class EnvironmentInfo {
  readonly #shapes = new ExpiringCache<EnvironmentShape>();
  readonly #splits = new ExpiringCache<Split[]>();
  readonly #counts = new ExpiringCache<number>();
  readonly #ids = new ExpiringCache<Map<string, number>>();

  static readonly #all = new WeakMap<Backend, EnvironmentInfo>();
  static of(hosted: HostedEnvironment): EnvironmentInfo {
    let info = EnvironmentInfo.#all.get(hosted.backend);
    if (info === undefined) EnvironmentInfo.#all.set(hosted.backend, (info = new EnvironmentInfo(hosted)));
    return info;
  }

  private constructor(readonly hosted: HostedEnvironment) {}

  shape(): Promise<EnvironmentShape> {
    return this.#shapes.get('', () => {
      const upstream = openEnvUpstreamOf(this.hosted.backend);
      return upstream === null ? this.#translated() : this.#native(upstream);
    });
  }

  splits(): Promise<Split[]> {
    return this.#splits.get('', () => this.hosted.backend.splits(null, deadline()));
  }

  numTasks(split: string): Promise<number> {
    return this.#counts.get(split, () => this.hosted.backend.numTasks(null, split, deadline()));
  }

  /** Task index by task id (a string or number in the spec). Empty if the environment cannot list tasks. */
  taskIds(split: string): Promise<Map<string, number>> {
    return this.#ids.get(split, async () => {
      const tasks = await listAllTasks(this.hosted.backend, null, split, deadline()).catch((error: unknown) => {
        if (error instanceof PalestraError && error.code === 'tasks_not_listable') return [] as TaskSpec[];
        throw error;
      });
      const ids = new Map<string, number>();
      tasks.forEach((task, index) => {
        const id = idOf(task);
        if (id !== null && !ids.has(id)) ids.set(id, index);
      });
      return ids;
    });
  }

  async #translated(): Promise<EnvironmentShape> {
    const { backend, name, owner } = this.hosted;
    const toolSpecs = listedTools(await backend.tools(null, deadline()));
    const className = classNameOf(name);
    const [only] = toolSpecs;
    const toolActions = !(toolSpecs.length === 1 && only!.name === ACTION_TOOL);
    return {
      mode: 'simulation',
      native: false,
      toolActions,
      className,
      schema: toolActions ? toolSchema : actionSchema(className, only!.input_schema ?? NO_ARGUMENTS),
      metadata: {
        name,
        description: `${owner}/${name} environment`,
        readme_content: null,
        version: '1.0.0',
        author: owner,
        documentation_url: null,
      },
      tools: toolsText(toolSpecs),
      toolSpecs,
    };
  }

  async #native(upstream: OpenEnvUpstream): Promise<EnvironmentShape> {
    const { mode, schema, metadata, toolActions } = await upstream.shape(deadline());
    const className = typeof metadata['name'] === 'string' ? metadata['name'] : classNameOf(this.hosted.name);
    return { mode, native: true, toolActions, className, schema, metadata, tools: '[]', toolSpecs: [] };
  }
}

/** `GET /metadata`: that of the OpenEnv server; otherwise the description of the registered environment. */
export function metadataOf({ native, metadata }: EnvironmentShape, { about }: HostedEnvironment): JsonObject {
  if (native || about === undefined) return metadata;
  const { description, readme, version } = about;
  return { ...metadata, description: description || metadata['description'], readme_content: readme, version: String(version) };
}

export function idOf(task: TaskSpec): string | null {
  if (typeof task !== 'object' || task === null) return null;
  const { id = null, task_id: taskId = null } = task as { id?: unknown; task_id?: unknown };
  const found = id ?? taskId;
  return typeof found === 'string' || typeof found === 'number' ? String(found) : null;
}

const deadline = () => AbortSignal.timeout(DEADLINE_MS);
