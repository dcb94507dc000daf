export { onAbort, abortable } from './abortable.ts';
export { type Clock, systemClock } from './clock.ts';
export { newUuid, newTaskId, newOrderedTaskId, isUuid } from './ids.ts';
export { BatchQueueFullError, MicroBatcher } from './micro-batcher.ts';
export { readBounded, readBoundedText } from './read-bounded.ts';
export { retryAfterMs } from './retry-after.ts';
export { SingleFlight } from './single-flight.ts';
export { TimeSlice } from './time-slice.ts';
export { splitCredentials } from './url-credentials.ts';
