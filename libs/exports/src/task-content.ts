import { type JsonObject, type Message, type MessageBlock, stringifyJson, type TaskSpec, type ToolSpec } from '@palestra/protocol';
import { canonicalHash } from '@palestra/rollouts';

/** What a source reads of a task. */
export interface TaskParts {
  prompt: MessageBlock[];
  /** Empty unless requested. */
  messages: Message[];
  tools: ToolSpec[];
  /** null unless requested. */
  spec: TaskSpec;
  /** Number of the environment's version; null without versions. */
  version: number | null;
}

/** The scored rollouts of a task (docs/reference/ors.md#task-difficulty). */
export interface TaskMean {
  avg_reward: number;
  num_rollouts: number;
}

export interface TaskContent extends TaskParts {
  /** `owner/name`, written to the rows unchanged. */
  environment: string;
  split: string;
  index: number;
  /** null: the rows do not say how difficult their tasks are. */
  difficulty: TaskMean | null;
}

/** The hash by which equal tasks of all versions and splits are found: `TaskRef.key` of the Python package. */
export const contentKey = (spec: TaskSpec): string => canonicalHash(JSON.parse(stringifyJson(spec)));

/** The facts of every row but those of SkyRL's script, which has five columns. Later code finds the task by them. */
export function factsOf({ environment, version, split, index, spec, tools, difficulty }: TaskContent): JsonObject {
  const schema = tools.map(({ name, description, input_schema }) => ({ name, description, input_schema }));
  return {
    env_name: environment,
    env_version: version,
    split,
    task_index: index,
    task_key: contentKey(spec),
    tool_schema_hash: canonicalHash(JSON.parse(stringifyJson(schema))),
    ...(difficulty && { avg_reward: difficulty.avg_reward, num_rollouts: difficulty.num_rollouts }),
  };
}
