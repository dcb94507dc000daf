import type { DeployView } from '@palestra/protocol';
import { deployStates } from './deploy-texts.ts';

export function DeployState({ deploy: { state } }: { deploy: Pick<DeployView, 'state'> }) {
  const [text, mark, className] = deployStates[state];
  return (
    <span className={className}>
      <span aria-hidden="true">{mark}</span> {text}
    </span>
  );
}
