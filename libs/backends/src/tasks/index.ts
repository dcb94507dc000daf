export { TaskSetBackend } from './task-set-backend.ts';
export type { TaskPlace, TaskSource } from './task-source.ts';
