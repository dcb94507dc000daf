export { OrsBackend } from './ors-backend.ts';
