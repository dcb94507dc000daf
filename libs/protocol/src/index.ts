export * from './error-catalogue.ts';
export * from './json.ts';
export * from './lossless.ts';
export * from './ors-bodies.ts';
export * from './ors.schema.ts';
export * from './rollout-event.ts';
export * from './sse.ts';
export * from './views.ts';
