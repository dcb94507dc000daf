import { expect, test } from 'vitest';
import { imageVolumes } from './image-volumes.ts';
import { isolation } from './isolation.ts';

test('a folder that is declared twice is one, and an image without VOLUME has none', () => {
  expect(imageVolumes(null)).toEqual([]);
  expect(imageVolumes({ '/data/': {}, '/data': {}, '/var//lib/../x.y': {} })).toEqual(['/data', '/var/x.y']);
});

test.each(['/data:size=9g', '/a,b', '/', 'data', '/a b'])('VOLUME %s is refused', (folder) => {
  expect(() => imageVolumes({ '/data': {}, [folder]: {} })).toThrow(`VOLUME ${JSON.stringify(folder)}, which cannot be limited`);
});

test('more than 16 are refused', () => {
  const declared = Object.fromEntries(Array.from({ length: 17 }, (_, at) => [`/data-${at}`, {}]));
  expect(() => imageVolumes(declared)).toThrow('The image has 17 VOLUMEs. At most 16 are allowed.');
});

test.each([
  [false, /,size=8m,uid=1000,gid=1001$/],
  [true, /,size=8m,notmpcopyup,U$/],
])('each has the limit of /tmp and belongs to the user of the container (Podman: %s)', (podman, options) => {
  const resources = { cpus: 1, memoryMb: 128, pids: 64, diskMb: 8 };
  const { Tmpfs } = isolation({ podman } as never, resources, { folders: ['/data'], user: '1000:1001' });
  expect(Tmpfs).toMatchObject({ '/data': expect.stringMatching(options), '/tmp': expect.stringMatching(/,size=8m/) });
});
