import { type Denominator, DENOMINATORS, KNOWN_PHASES, LENSES } from '@palestra/protocol';
import { type RunFilter } from '../data/run-queries.ts';
import { Menu, MenuChoice, MenuLine } from '../frame/Menu.tsx';
import { lensNames } from '../run/LensMenu.tsx';

const denominators: Record<Denominator, string> = {
  scored: 'Scored',
  all: 'All received, null as 0',
  effective: 'Effective, without interrupted rollouts',
};
const phases = ['main', ...KNOWN_PHASES] as const;
const phaseNames = { main: 'The phase with the most rollouts', train: 'Training', eval: 'Evaluation' } as const;

/** Phase, lens and denominator, which apply to all runs of a comparison. */
export function CompareMenu({ filter, setFilter }: { filter: RunFilter; setFilter: (change: Partial<RunFilter>) => void }) {
  const lens = filter.lens ?? 'canonical';
  const den = filter.den ?? 'effective';
  const phase = filter.phase ?? 'main';
  return (
    <>
      <Menu label="Phase" button={<>{phase === 'main' ? 'Main phase' : phaseNames[phase]} ▾</>}>
        <MenuChoice
          title="Phase of the rollouts"
          value={phase}
          options={phases.map((value) => ({ value, label: phaseNames[value] }))}
          onChange={(value) => setFilter({ phase: value === 'main' ? undefined : value })}
        />
      </Menu>
      <Menu
        label="Definitions of the metrics"
        button={<>{lens === 'canonical' ? `Canonical, ${denominators[den].split(',')[0]!.toLowerCase()}` : `As ${lensNames[lens]}`} ▾</>}
      >
        <MenuChoice
          title="Definitions of the figures (charts and tasks stay canonical)"
          value={lens}
          options={LENSES.map((value) => ({ value, label: lensNames[value] }))}
          onChange={(value) => setFilter({ lens: value === 'canonical' ? undefined : value })}
        />
        <MenuLine />
        <MenuChoice
          title="Rollouts in canonical figures"
          value={den}
          options={DENOMINATORS.map((value) => ({ value, label: denominators[value] }))}
          onChange={(value) => setFilter({ den: value === 'effective' ? undefined : value })}
        />
      </Menu>
    </>
  );
}
