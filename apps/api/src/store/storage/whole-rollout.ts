/**
 * Bytes of a rollout that is read as a whole: it is in memory several times, and its JSON must fit into one string (512 MiB). A process
 * could end with a larger one.
 */
export const MAX_WHOLE_BYTES = 128 * 1024 * 1024;
/** Memory that a message takes beside its text, bytes. */
const MESSAGE_BYTES = 256;

/** What the messages of a rollout take in memory, in bytes. `bytes`: of their bodies. */
export const sizeOf = ({ bytes, messages }: { bytes: number; messages: number }): number => bytes + MESSAGE_BYTES * messages;
