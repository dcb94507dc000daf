// Reads the name in the first message of a TLS client. The text of this file precedes that of the gateway's program: no imports, and exports
// only for tests.

const HANDSHAKE = 22;
const CLIENT_HELLO = 1;
const SERVER_NAME = 0;
const HOST_NAME = 0;
const RECORD_HEADER = 5;
const MESSAGE_HEADER = 4;

/**
 * The host name (server_name, RFC 6066) of a ClientHello. `undefined`: the message is not complete. Null: it is no ClientHello, or has not
 * exactly one host name.
 */
export function serverName(bytes) {
  const message = handshakeOf(bytes);
  if (message == null) return message;
  try {
    return nameOf(message);
  } catch {
    // A length leads out of the message.
    return null;
  }
}

/** A star in a name stands for itself. */
export function isSameName(one, other) {
  const [first, second] = [one, other].map((name) => name.toLowerCase().replace(/\.$/, ''));
  return first === second;
}

/** The first handshake message, which may be in several records. As the result of `serverName` when it is not there. */
function handshakeOf(bytes) {
  const parts = [];
  let size = 0;
  let end = null;
  for (let at = 0; ;) {
    if (bytes.length > at && bytes[at] !== HANDSHAKE) return null;
    if (bytes.length < at + RECORD_HEADER) return undefined;
    const length = bytes.readUInt16BE(at + 3);
    if (length === 0) return null;
    at += RECORD_HEADER;
    const part = bytes.subarray(at, at + length);
    parts.push(part);
    size += part.length;
    if (end === null && size >= MESSAGE_HEADER) {
      const header = Buffer.concat(parts, MESSAGE_HEADER);
      if (header[0] !== CLIENT_HELLO) return null;
      end = MESSAGE_HEADER + header.readUIntBE(1, 3);
    }
    if (end !== null && size >= end) return Buffer.concat(parts, end).subarray(MESSAGE_HEADER);
    if (part.length < length) return undefined;
    at += length;
  }
}

/** Throws a `RangeError` for a message that is cut. */
function nameOf(message) {
  // Version and random.
  let at = 34;
  at += 1 + message.readUInt8(at);
  at += 2 + message.readUInt16BE(at);
  at += 1 + message.readUInt8(at);
  const end = at + 2 + message.readUInt16BE(at);
  at += 2;
  let name = null;
  while (at < end) {
    const [type, length] = [message.readUInt16BE(at), message.readUInt16BE(at + 2)];
    at += 4;
    if (type === SERVER_NAME) {
      if (name !== null) return null;
      name = onlyName(message.subarray(at, at + length));
      if (name === null) return null;
    }
    at += length;
  }
  return at === end && end === message.length ? name : null;
}

function onlyName(list) {
  const length = list.readUInt16BE(3);
  const isOnly = list.readUInt16BE(0) === list.length - 2 && list[2] === HOST_NAME && length === list.length - 5;
  return isOnly && length > 0 ? list.toString('latin1', 5) : null;
}
