import { pipeline } from 'node:stream/promises';
import type { Readable } from 'node:stream';
import tar from 'tar-stream';

/** `body`: null for a folder. `name`: relative, with `/`. */
export interface PackedFile {
  name: string;
  size: number;
  body: NodeJS.ReadableStream | null;
}

/** Files as a tar archive, which their user may only read. An error of the files ends the archive with it. */
export function packFiles(files: AsyncIterable<PackedFile>): Readable {
  const pack = tar.pack();
  const write = async () => {
    for await (const { name, size, body } of files) {
      if (body === null) pack.entry({ name, type: 'directory', mode: 0o755 });
      else await pipeline(body, pack.entry({ name, size, mode: 0o444 }));
    }
    pack.finalize();
  };
  write().catch((error: Error) => pack.destroy(error));
  return pack as unknown as Readable;
}
