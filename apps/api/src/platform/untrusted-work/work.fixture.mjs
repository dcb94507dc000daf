/** Expensive work for the tests. */
export default function work({ does }) {
  if (does === 'loop') for (;;);
  if (does === 'heap') {
    const map = new Map();
    for (let at = 0; ; at += 1) map.set(at, `${at}`);
  }
  if (does === 'buffers') {
    const kept = [];
    for (;;) kept.push(Buffer.alloc(8 * 1024 * 1024, 1));
  }
  if (does === 'fail') throw new Error('broken');
  return { env: process.env, pid: process.pid };
}
