"""What networkx can do, from deep entries: dispatched functions, modules imported when they are asked for, re-exports."""

import networkx as nx


def _edges(graph):
    return sorted(map(sorted, graph.edges)) if not graph.is_directed() else sorted(graph.edges)


def shortest_paths():
    g = nx.path_graph(5)
    g.add_edge(0, 3, weight=2)
    return [
        nx.shortest_path(g, 0, 4),
        nx.shortest_path_length(g, 0, 4, weight="weight"),
        dict(nx.all_pairs_shortest_path_length(g))[1],
    ]


def dijkstra():
    g = nx.DiGraph()
    g.add_weighted_edges_from([("a", "b", 1), ("b", "c", 2), ("a", "c", 5), ("c", "d", 1)])
    return [
        nx.dijkstra_path(g, "a", "d"),
        nx.single_source_dijkstra_path_length(g, "a"),
        nx.bellman_ford_path(g, "a", "d"),
    ]


def a_star():
    g = nx.grid_2d_graph(3, 3)
    return nx.astar_path(g, (0, 0), (2, 2), heuristic=lambda a, b: abs(a[0] - b[0]) + abs(a[1] - b[1]))


def components():
    g = nx.Graph([(1, 2), (3, 4), (4, 5)])
    d = nx.DiGraph([(1, 2), (2, 1), (2, 3)])
    return [
        sorted(map(sorted, nx.connected_components(g))),
        sorted(map(sorted, nx.strongly_connected_components(d))),
        nx.is_weakly_connected(d),
    ]


def biconnected():
    g = nx.barbell_graph(3, 1)
    return [sorted(nx.articulation_points(g)), sorted(map(sorted, nx.biconnected_components(g))), sorted(nx.bridges(g))]


def spanning_tree():
    g = nx.cycle_graph(5)
    for n, (u, v) in enumerate(g.edges):
        g[u][v]["weight"] = n
    return [_edges(nx.minimum_spanning_tree(g)), _edges(nx.maximum_spanning_tree(g, algorithm="prim"))]


def topological():
    d = nx.DiGraph([("a", "b"), ("b", "c"), ("a", "c")])
    return [
        list(nx.topological_sort(d)),
        list(nx.lexicographical_topological_sort(d)),
        nx.dag_longest_path(d),
        sorted(nx.transitive_reduction(d).edges),
        list(nx.topological_generations(d)),
    ]


def cycles():
    d = nx.DiGraph([(0, 1), (1, 2), (2, 0), (2, 3), (3, 2)])
    return [
        sorted(map(sorted, nx.simple_cycles(d))),
        nx.find_cycle(d),
        sorted(map(sorted, nx.cycle_basis(nx.cycle_graph(4)))),
    ]


def searching():
    g = nx.balanced_tree(2, 2)
    return [
        list(nx.bfs_edges(g, 0)),
        list(nx.dfs_preorder_nodes(g, 0)),
        dict(nx.bfs_successors(g, 0)),
        list(nx.dfs_labeled_edges(g, 1))[:4],
    ]


def centralities():
    g = nx.star_graph(4)
    return [nx.degree_centrality(g), nx.betweenness_centrality(g), nx.closeness_centrality(g)]


def clustering():
    g = nx.complete_graph(4)
    g.remove_edge(0, 1)
    return [nx.clustering(g), nx.transitivity(g), nx.triangles(g), nx.average_clustering(g)]


def cliques():
    g = nx.Graph([(1, 2), (2, 3), (1, 3), (3, 4)])
    return [
        sorted(map(sorted, nx.find_cliques(g))),
        sorted(nx.max_weight_clique(g, weight=None)[0]),
        nx.node_clique_number(g, 1),
    ]


def matching():
    g = nx.path_graph(4)
    return [
        sorted(map(sorted, nx.max_weight_matching(g))),
        nx.is_perfect_matching(g, {(0, 1), (2, 3)}),
        nx.bipartite.maximum_matching(nx.complete_bipartite_graph(2, 2)),
    ]


def bipartite():
    g = nx.complete_bipartite_graph(2, 3)
    return [
        nx.is_bipartite(g),
        sorted(map(sorted, nx.bipartite.sets(g))),
        nx.bipartite.density(g, [0, 1]),
        _edges(nx.bipartite.projected_graph(g, [0, 1])),
    ]


def flows():
    d = nx.DiGraph()
    d.add_edge("s", "a", capacity=3)
    d.add_edge("s", "b", capacity=2)
    d.add_edge("a", "t", capacity=2)
    d.add_edge("b", "t", capacity=3)
    d.add_edge("a", "b", capacity=1)
    value, cut = nx.minimum_cut(d, "s", "t")
    return [nx.maximum_flow_value(d, "s", "t"), value, sorted(cut[0])]


def colouring():
    return [
        nx.greedy_color(nx.cycle_graph(5), strategy="largest_first"),
        nx.greedy_color(nx.path_graph(4), strategy="DSATUR"),
    ]


def cores_and_communities():
    g = nx.barbell_graph(4, 0)
    return [
        nx.core_number(g),
        sorted(map(sorted, nx.community.greedy_modularity_communities(g))),
        nx.community.modularity(g, [{0, 1, 2, 3}, {4, 5, 6, 7}]),
    ]


def label_propagation():
    g = nx.barbell_graph(3, 0)
    return [
        sorted(map(sorted, nx.community.label_propagation_communities(g))),
        sorted(map(sorted, next(nx.community.girvan_newman(g)))),
    ]


def isomorphism():
    a, b = nx.cycle_graph(4), nx.relabel_nodes(nx.cycle_graph(4), {0: "a", 1: "b", 2: "c", 3: "d"})
    return [
        nx.is_isomorphic(a, b),
        nx.faster_could_be_isomorphic(a, nx.path_graph(4)),
        nx.weisfeiler_lehman_graph_hash(a) == nx.weisfeiler_lehman_graph_hash(b),
    ]


def operators():
    a, b = nx.path_graph(3), nx.path_graph(2)
    return [
        _edges(nx.compose(a, nx.Graph([(5, 6)]))),
        nx.cartesian_product(a, b).number_of_edges(),
        _edges(nx.complement(a)),
        _edges(nx.disjoint_union(a, b)),
        _edges(nx.line_graph(a)),
    ]


def random_graphs():
    return [
        _edges(nx.gnp_random_graph(6, 0.4, seed=3)),
        _edges(nx.barabasi_albert_graph(6, 2, seed=1)),
        _edges(nx.watts_strogatz_graph(6, 2, 0.5, seed=2)),
    ]


def named_graphs():
    return [
        nx.petersen_graph().size(),
        sorted(d for _, d in nx.wheel_graph(5).degree),
        nx.karate_club_graph().number_of_edges(),
        nx.hypercube_graph(2).size(),
        nx.ladder_graph(3).size(),
    ]


def distances():
    g = nx.cycle_graph(6)
    return [
        nx.diameter(g),
        nx.radius(g),
        nx.center(g),
        nx.eccentricity(g, 0),
        nx.wiener_index(g),
        nx.barycenter(nx.path_graph(3)),
    ]


def text_formats():
    import io

    g = nx.Graph([(1, 2), (2, 3)])
    stream = io.BytesIO()
    nx.write_graphml(g, stream)
    return [
        list(nx.generate_edgelist(g)),
        list(nx.generate_adjlist(g)),
        nx.node_link_data(g),
        list(nx.generate_gml(g))[:4],
        len(stream.getvalue()) > 10,
        _edges(nx.parse_edgelist(["1 2", "2 3"])),
    ]


def graph_classes():
    m = nx.MultiDiGraph([(1, 2), (1, 2, "k"), (2, 3)])
    g = m.to_undirected()
    return [
        sorted(m.edges(keys=True), key=str),
        m.in_degree(2),
        m.number_of_edges(1, 2),
        sorted(g.edges(), key=str),
        _edges(nx.Graph(m).subgraph([1, 2])),
        nx.density(m),
        str(m),
    ]


def views():
    g = nx.path_graph(4)
    nx.set_node_attributes(g, {0: "x"}, "c")
    frozen = nx.freeze(g.copy())
    try:
        frozen.add_edge(0, 3)
    except nx.NetworkXError as error:
        told = str(error)
    return [
        g.nodes(data="c"),
        list(nx.subgraph_view(g, filter_node=lambda n: n != 1).edges),
        told,
        nx.degree_histogram(g),
        sorted(nx.non_edges(g)),
    ]
