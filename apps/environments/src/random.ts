export { SeededRandom } from '@palestra/environment-kit';
