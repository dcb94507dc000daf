import { type Denominator, DENOMINATORS, type Lens, LENSES } from '@palestra/protocol';
import { Menu, MenuChoice, MenuLine } from '../frame/Menu.tsx';
import { useRun } from './context.ts';

export const lensNames: Record<Lens, string> = {
  canonical: 'Canonical',
  skyrl: 'SkyRL',
  verl: 'verl',
  trl: 'TRL',
  'prime-rl': 'prime-rl',
  slime: 'slime, miles',
  tinker: 'tinker',
  rllm: 'rLLM',
};
const denominators: Record<Denominator, [label: string, hint: string]> = {
  effective: ['Effective', 'without interrupted rollouts'],
  scored: ['Scored', 'with partial sums'],
  all: ['All received', 'null as 0'],
};

/** Chooses the lens of the figures and the denominator of canonical figures. */
export function LensMenu() {
  const { filter, setFilter } = useRun();
  const lens = filter.lens ?? 'canonical';
  const den = filter.den ?? 'effective';
  return (
    <Menu
      label="Definitions of the metrics"
      shortcut="L"
      button={<>{lens === 'canonical' ? `Canonical, ${denominators[den][0].toLowerCase()}` : `As ${lensNames[lens]}`} ▾</>}
    >
      <MenuChoice
        title="Definitions of the figures"
        value={lens}
        options={LENSES.map((value) => ({ value, label: lensNames[value] }))}
        onChange={(value) => setFilter({ lens: value === 'canonical' ? undefined : value })}
      />
      <MenuLine />
      <MenuChoice
        title="Rollouts in canonical figures"
        value={den}
        options={DENOMINATORS.map((value) => ({ value, label: denominators[value][0], hint: denominators[value][1] }))}
        onChange={(value) => setFilter({ den: value === 'effective' ? undefined : value })}
      />
    </Menu>
  );
}
