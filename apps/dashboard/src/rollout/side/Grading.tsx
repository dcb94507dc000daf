import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { messagesAtQuery } from '../../data/rollout.ts';
import { formatCount, formatReward, UNKNOWN } from '../../format/number.ts';
import { MemberLink } from '../../frame/MemberLink.tsx';
import { PlainText } from '../../text/PlainText.tsx';
import { rewardOf } from '../transcript.ts';
import { goldenAnswerOf, graderTextOf, relatedRolloutsOf, rewardComponentsOf } from './outcome.ts';
import type { PanelProps } from './panel-props.ts';
import { PropertyList, Section } from './parts.tsx';

/** Longer texts are cut. The message or the Task tab has all of it. */
const MAX_CHARACTERS = 600;
const MAX_COMPONENTS = 30;

function ShortText({ text }: { text: string }) {
  return (
    <span className="whitespace-pre-wrap break-words">
      <PlainText text={text.slice(0, MAX_CHARACTERS)} />
      {text.length > MAX_CHARACTERS && <span className="label"> … {formatCount(text.length - MAX_CHARACTERS)} more characters</span>}
    </span>
  );
}

/** The message with the last reward: shown when the upload has no text of a grader. */
function LastScoredMessage({ header, outline, items, go }: PanelProps) {
  const row = useMemo(() => items.findLastIndex((item) => rewardOf(outline, item) !== null), [outline, items]);
  const item = items[row];
  const index = item?.kind === 'call' && item.result !== null ? outline.index[item.result] : item?.anchor;
  const message = useQuery({ ...messagesAtQuery(header.id, index ?? 0, 1), enabled: index !== undefined }).data?.[0];
  if (index === undefined || !message?.content) return <>{UNKNOWN}</>;
  return (
    <>
      <ShortText text={message.content} />{' '}
      <button type="button" className="link" onClick={() => go(row)}>
        #{index}
      </button>
    </>
  );
}

/** How the rollout was graded: reward components, text of the grader, expected answer. */
export function Grading(props: PanelProps) {
  const { header } = props;
  const components = useMemo(() => rewardComponentsOf(header), [header]);
  const grader = graderTextOf(header);
  const goldenAnswer = goldenAnswerOf(header);
  return (
    <Section title="Grading">
      <PropertyList
        items={[
          ...components.slice(0, MAX_COMPONENTS).map(([name, value]) => [name, formatReward(value)] as const),
          grader !== null
            ? ['Grader', <ShortText key="g" text={grader} />]
            : header.failure?.text
              ? ['Failure', <ShortText key="f" text={header.failure.text} />]
              : ['Last result', <LastScoredMessage key="l" {...props} />],
          ...(goldenAnswer === null ? [] : ([['Golden answer', <ShortText key="a" text={goldenAnswer} />]] as const)),
        ]}
      />
    </Section>
  );
}

/** The rollouts that this one is a sub-agent of, branches from or resumes. */
export function RelatedRollouts({ header }: PanelProps) {
  const related = relatedRolloutsOf(header);
  if (related.length === 0) return null;
  return (
    <Section>
      <PropertyList
        items={related.map(({ relation, name, id }) => [
          relation,
          id === null ? (
            <PlainText key={relation} text={name} />
          ) : (
            <MemberLink key={relation} to="/rollout/$id" params={{ id }} search={{}} preload={false} className="link mono break-all">
              {id}
            </MemberLink>
          ),
        ])}
      />
    </Section>
  );
}
