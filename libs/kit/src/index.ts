export * from './abortable.ts';
export * from './clock.ts';
export * from './ids.ts';
export * from './micro-batcher.ts';
export * from './single-flight.ts';
