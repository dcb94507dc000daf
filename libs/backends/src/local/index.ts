export { LocalBackend } from './local-backend.ts';
/** What it is made of. */
export { type Environment, InProcessLink, LinkClient } from '@palestra/environment-kit';
