export { LocalBackend } from './local-backend.ts';
