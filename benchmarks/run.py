"""Speed and memory against peers, as tables. Nothing is asserted: machines differ, ratios less.

All contestants of a table take turns in one run, so that a noisy machine disturbs them alike; the
ratio is the median over rounds of the contestant's time divided by ours in the same round.
`make bench` installs the peers. Without topics all are measured, in less than 25 minutes on two
cores. The tables of each topic are kept in _build/bench. With --page all that are there are joined
to measured.json, beside this file, which keeps what other processors measured; the page *How fast
is it?* is made of it, and bench.md and bench.json in _build/bench of what this machine measured.
"""
import argparse, importlib, time
from pathlib import Path
import page
from measure import Report

# each is a file here, with a function tables(report, rounds)
TOPICS = ['flash', 'sparse', 'choice', 'glove', 'bpe', 'imports', 'attention', 'multihead',
          'weights', 'memory', 'views', 'decode', 'bits', 'serving', 'training', 'ring',
          'loading', 'gpu']

def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('topics', nargs='*', choices=[[], *TOPICS], help='all if none is named')
    parser.add_argument('--rounds', type=int, default=31)
    parser.add_argument('--threads', type=int, help="torch's; its own default if not given")
    parser.add_argument('--page', action='store_true', help='write the page; so without topics')
    args = parser.parse_args()
    if args.threads:
        import torch
        torch.set_num_threads(args.threads)
    folder,line = Path(__file__).parents[1]/'_build'/'bench',page.machine()
    folder.mkdir(parents=True, exist_ok=True)
    print(line)
    for name in args.topics or TOPICS:
        report,start = Report(),time.time()
        importlib.import_module(name).tables(report, args.rounds)
        report.write(folder/f'{name}.json', line)
        report.say(f'{name}: {time.time()-start:.0f} s')
    if args.page or not args.topics: page.write(folder, TOPICS)

if __name__ == '__main__': main()
