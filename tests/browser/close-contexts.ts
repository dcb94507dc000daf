import { afterAll } from 'vitest';
import { closeUnreleased } from './browser.ts';

afterAll(closeUnreleased);
