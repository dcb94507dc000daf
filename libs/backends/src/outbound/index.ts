export { isLoopback, parseCidr, type PrivateUpstreams } from './address-ranges.ts';
export { ANSWER_LIMITS, answerTooLarge } from './answers.ts';
export { outboundAgent, outboundFetch } from './connect.ts';
export { OutboundPolicy } from './outbound-policy.ts';
