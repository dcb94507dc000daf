export { lakeFile, lakeKey, LAKE_COLUMNS, LAKE_PART_PLACES, LAKE_PREFIX, type LakePlace, type LakeRollout } from './lake/lake-file.ts';
export { pythonJson } from './python-json.ts';
export { type PromptFormat, taskFile } from './task-file.ts';
export { type ChatMessage, systemPrompt, taskMessages } from './task-prompt.ts';
export { type TaskFailure, taskRows, type TaskRow, type TaskSource } from './task-rows.ts';
export * from './rollouts/index.ts';
