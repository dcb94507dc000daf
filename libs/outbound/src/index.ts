export { isLoopback, parseCidr, type PrivateUpstreams } from './address-ranges.ts';
export { ANSWER_LIMITS, AnswerBytes, answerTooLarge, assertParsable, detailIn, readAnswer, textOf } from './answers.ts';
export { outboundAgent, outboundFetch } from './connect.ts';
export { OutboundPolicy, unrestricted } from './outbound-policy.ts';
