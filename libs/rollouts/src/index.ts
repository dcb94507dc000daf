export * from './double-reward.ts';
export * from './event-reader.ts';
export * from './rollout-state.ts';
export * from './start-facts.ts';
export * from './tolerant-json.ts';
