import type { CauseClass } from '@palestra/protocol';

const POLICY =
  /not a valid (?:tool|function|action|command)|(?:unknown|no such|unregistered) (?:tool|function|action)|(?:tool|function)\b.{0,60}\b(?:not found|does not exist|not available)|unexpected (?:keyword )?argument|missing \d* ?(?:required|positional)|(?:argument|parameter|property|field)s?\b.{0,40}\brequired|required (?:argument|parameter|property|field)|validation errors? for|additional propert|extra (?:inputs|fields)|field required|input should be|invalid (?:json|argument|parameter|input|action|arguments)|(?:parse|parsing|decode) error|error parsing|jsondecodeerror|illegal (?:move|action)/i;
const INFRASTRUCTURE =
  /\b(?:429|502|503|504)\b|bad gateway|service unavailable|gateway time-?out|timed out|time-?out\b|timeouterror|connect(?:ion)? ?(?:refused|reset|aborted|closed|error|lost)|\bE(?:CONN\w+|TIMEDOUT|HOSTUNREACH|NOTFOUND|AI_AGAIN|PIPE)\b|broken pipe|socket hang up|name resolution|session[ _](?:was |is )?(?:lost|expired|not[ _]found)|out of memory|no space left|rate.?limit|too many requests|(?:worker|backend|container|sandbox) (?:died|lost|exited|crashed|unavailable)/i;
const ENVIRONMENT =
  /traceback \(most recent call last\)|internal (?:server )?error|\b500\b|unhandled|assertion ?error|(?:value|type|key|index|attribute|runtime|name|zerodivision|notimplemented)error\b/i;
/** Tools that run the code of the policy: its exceptions are those of the policy. */
const RUNS_CODE = /bash|shell|python|exec|terminal|code|repl|notebook|run_|script/i;

/** Whose failure a text tells; null: it does not say. The same words as in `CALL_FAILURES`. */
export function classOfText(text: string, tool: string | null): CauseClass | null {
  if (tool !== null && RUNS_CODE.test(tool)) return INFRASTRUCTURE.test(text) && !/traceback/i.test(text) ? 'infrastructure' : null;
  if (POLICY.test(text)) return 'policy';
  if (INFRASTRUCTURE.test(text)) return 'infrastructure';
  return ENVIRONMENT.test(text) ? 'environment' : null;
}
