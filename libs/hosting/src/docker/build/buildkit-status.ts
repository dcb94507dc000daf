/** A step of a build. */
export interface BuildVertex {
  digest: string;
  name: string;
  cached: boolean;
  started: boolean;
  completed: boolean;
  error: string;
}

export interface BuildStatus {
  vertexes: BuildVertex[];
  logs: { vertex: string; stream: 'stdout' | 'stderr'; text: string }[];
}

type Field = { number: number; value: bigint | Buffer };

/**
 * Decodes the progress of BuildKit: the protobuf message `StatusResponse` of moby/buildkit, api/services/control/control.proto. Only the fields
 * that a log needs; throws for bytes that are no such message.
 */
export function decodeBuildStatus(bytes: Buffer): BuildStatus {
  const status: BuildStatus = { vertexes: [], logs: [] };
  for (const { number, value } of fields(bytes)) {
    if (!Buffer.isBuffer(value)) continue;
    if (number === 1) status.vertexes.push(vertex(value));
    if (number === 3) status.logs.push(log(value));
  }
  return status;
}

function vertex(bytes: Buffer): BuildVertex {
  const of = byNumber(bytes);
  return {
    digest: text(of.get(1)),
    name: text(of.get(3)),
    cached: of.get(4) === 1n,
    started: of.has(5),
    completed: of.has(6),
    error: text(of.get(7)),
  };
}

function log(bytes: Buffer): BuildStatus['logs'][number] {
  const of = byNumber(bytes);
  return { vertex: text(of.get(1)), stream: of.get(3) === 2n ? 'stderr' : 'stdout', text: text(of.get(4)) };
}

const byNumber = (bytes: Buffer) => new Map([...fields(bytes)].map(({ number, value }) => [number, value]));
const text = (value: bigint | Buffer | undefined): string => (Buffer.isBuffer(value) ? value.toString('utf8') : '');

/** The fields of a message, of the wire types that this message has: numbers (0) and lengths with bytes (2); also 64 (1) and 32 bits (5). */
function* fields(bytes: Buffer): Generator<Field> {
  let at = 0;
  const varint = (): bigint => {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = bytes[at];
      if (byte === undefined) break;
      at += 1;
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return value;
    }
    throw new Error('a number of a build status is cut off');
  };
  const take = (length: number): Buffer => {
    if (at + length > bytes.length) throw new Error('a field of a build status is cut off');
    at += length;
    return bytes.subarray(at - length, at);
  };
  while (at < bytes.length) {
    const key = Number(varint());
    const number = key >> 3;
    const type = key & 7;
    if (type === 0) yield { number, value: varint() };
    else if (type === 2) yield { number, value: take(Number(varint())) };
    else if (type === 1 || type === 5) yield { number, value: take(type === 1 ? 8 : 4) };
    else throw new Error(`a build status has a field of the unknown type ${type}`);
  }
}
