import { describe } from 'vitest';
import { testMiles } from './miles.world.ts';

describe('miles 0.1.0 (recorded shapes)', () => {
  testMiles('miles', 'v167');
});
