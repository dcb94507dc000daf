export * from './backend.port.ts';
export * from './directory.port.ts';
