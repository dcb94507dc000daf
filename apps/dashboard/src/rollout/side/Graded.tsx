import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useMemo } from 'react';
import { messagesAtQuery } from '../../data/rollout.ts';
import { formatCount, formatReward, UNKNOWN } from '../../format/number.ts';
import { PlainText } from '../../text/PlainText.tsx';
import { rewardOf } from '../transcript.ts';
import { componentsOf, goldenOf, graderTextOf, relativesOf } from './outcome.ts';
import { Facts, Section } from './parts.tsx';
import type { SideProps } from './SidePanel.tsx';

/** Of a long text only so much; the rest is in its message or under Task. */
const SHOWN_CHARACTERS = 600;
const MOST_COMPONENTS = 30;

function Text({ text }: { text: string }) {
  return (
    <span className="whitespace-pre-wrap break-words">
      <PlainText text={text.slice(0, SHOWN_CHARACTERS)} />
      {text.length > SHOWN_CHARACTERS && <span className="label"> … {formatCount(text.length - SHOWN_CHARACTERS)} characters more</span>}
    </span>
  );
}

/** What came with the last reward: where no grader's words were sent, this is what it said. */
function LastWords({ header, outline, items, go }: SideProps) {
  const row = useMemo(() => items.findLastIndex((item) => rewardOf(outline, item) !== null), [outline, items]);
  const item = items[row];
  const index = item?.kind === 'call' && item.result !== null ? outline.index[item.result] : item?.anchor;
  const message = useQuery({ ...messagesAtQuery(header.id, index ?? 0, 1), enabled: index !== undefined }).data?.[0];
  if (index === undefined || !message?.content) return <>{UNKNOWN}</>;
  return (
    <>
      <Text text={message.content} />{' '}
      <button type="button" className="link" onClick={() => go(row)}>
        #{index}
      </button>
    </>
  );
}

/** What the outcome was made of: components, the grader's words, the answer that was wanted. */
export function Graded(props: SideProps) {
  const { header } = props;
  const components = useMemo(() => componentsOf(header), [header]);
  const grader = graderTextOf(header);
  const golden = goldenOf(header);
  return (
    <Section title="Grading">
      <Facts
        facts={[
          ...components.slice(0, MOST_COMPONENTS).map(([name, value]) => [name, formatReward(value, { digits: 3 })] as const),
          [grader === null ? 'last words' : 'grader', grader === null ? <LastWords key="w" {...props} /> : <Text key="g" text={grader} />],
          ...(golden === null ? [] : ([['golden answer', <Text key="a" text={golden} />]] as const)),
        ]}
      />
    </Section>
  );
}

/** The rollout that this one belongs to or goes on from. */
export function Relatives({ header }: SideProps) {
  const relatives = relativesOf(header);
  if (relatives.length === 0) return null;
  return (
    <Section>
      <Facts
        facts={relatives.map(({ what, name, id }) => [
          what,
          id === null ? (
            <PlainText key={what} text={name} />
          ) : (
            <Link key={what} to="/rollout/$id" params={{ id }} search={{}} preload={false} className="link mono break-all">
              {id}
            </Link>
          ),
        ])}
      />
    </Section>
  );
}
