import type { CauseClass } from '@palestra/protocol';

const POLICY =
  /not a valid (?:tool|function|action|command)|(?:unknown|no such|unregistered) (?:tool|function|action)|(?:tool|function)\b.{0,60}\b(?:not found|does not exist|not available)|unexpected (?:keyword )?argument|missing \d* ?(?:required|positional)|(?:argument|parameter|property|field)s?\b.{0,40}\brequired|required (?:argument|parameter|property|field)|validation errors? for|additional propert|extra (?:inputs|fields)|field required|input should be|invalid (?:json|argument|parameter|input|action|arguments)|(?:parse|parsing|decode) error|error parsing|jsondecodeerror|illegal (?:move|action)/i;
const INFRASTRUCTURE =
  /bad gateway|service unavailable|gateway time-?out|timed out|time-?out\b|timeouterror|connect(?:ion)? ?(?:refused|reset|aborted|closed|error|lost)|\bE(?:CONN\w+|TIMEDOUT|HOSTUNREACH|NOTFOUND|AI_AGAIN|PIPE)\b|broken pipe|socket hang up|name resolution|session[ _](?:was |is )?(?:lost|expired|not[ _]found)|out of memory|no space left|rate.?limit|too many requests|(?:worker|backend|container|sandbox) (?:died|lost|exited|crashed|unavailable)/i;
const ENVIRONMENT =
  /traceback \(most recent call last\)|internal (?:server )?error|unhandled|assertion ?error|(?:value|type|key|index|attribute|runtime|name|zerodivision|notimplemented)error\b/i;
/** A number is an HTTP status only where the words around it say so, unlike in `KeyError: 503` and in `returned 500 rows`. */
const statusOf = (codes: string): RegExp =>
  new RegExp(
    String.raw`^\s*(?:${codes})(?::|\s*$)|(?:http(?:/[\d.]{1,3})?|status(?:[ _-]?code)?|\bcode|(?:(?<![a-z])|http|api|status|server|client)error|returned|answered|responded(?: with)?|response)["']?[ :=#(["']{0,3}(?:${codes})\b(?! [a-z]{2,}s\b)`,
    'i',
  );
const UNAVAILABLE = statusOf('429|50[234]');
const FAULTY = statusOf('500');
/** Tools that run the code of the policy: its exceptions are those of the policy. */
const RUNS_CODE = /bash|shell|python|exec|terminal|code|repl|notebook|run_|script/i;

/** Whose failure a text tells; null: it does not say. The same words as in `CALL_FAILURES`. */
export function classOfText(text: string, tool: string | null): CauseClass | null {
  const isInfrastructure = INFRASTRUCTURE.test(text) || UNAVAILABLE.test(text);
  if (tool !== null && RUNS_CODE.test(tool)) return isInfrastructure && !/traceback/i.test(text) ? 'infrastructure' : null;
  if (POLICY.test(text)) return 'policy';
  if (isInfrastructure) return 'infrastructure';
  return ENVIRONMENT.test(text) || FAULTY.test(text) ? 'environment' : null;
}
