"""Nothing is wrong with these either, though their loops and losses look like nobody else's."""

import torch
import torch.nn.functional as F
from torch import nn

from evidence.corpus.cases import case
from evidence.corpus.programs._data import (
    adding,
    citations,
    mnist,
    poem,
    reviews,
    rng,
    scaled,
    series,
    shifted,
    sklearn_table,
)
from evidence.corpus.programs._loops import (
    Net,
    Recurrent,
    accuracy,
    loaders,
    mlp,
    posted,
    r2,
    reached,
    tutorial,
)
from evidence.corpus.programs.sequences import (
    GCN,
    GPT,
    VAE,
    Transposed,
    honest,
    train_gcn,
    train_language_model,
    train_vae,
)


@case(None, data="time series", net="lstm")
@posted
def a_forecast_by_an_lstm(seed, fault):
    net = Recurrent(nn.LSTM, 1, 24, 1)
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    return tutorial(net, optimizer, nn.MSELoss(), series(seed, 700), 12, 16, metric=r2)


@case(None, data="sequence", net="gru")
@posted
def the_adding_problem_solved(seed, fault):
    net = Recurrent(nn.GRU, 2, 32, 1)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    return tutorial(
        net, optimizer, nn.MSELoss(), adding(seed, 1000, 10), 14, 32, metric=r2, clip=1.0
    )


@case(None, data="images", net="vae")
@posted
def a_vae_in_balance(seed, fault):
    x, _, x_val, _ = mnist(seed, 1347)
    return train_vae(VAE(), x.flatten(1), x_val.flatten(1), fault=False, epochs=20)


@case(None, data="text", net="transformer")
@posted
def a_little_gpt(seed, fault):
    train, valid, letters = poem(seed, 400)
    return honest(train_language_model(GPT(letters), train, valid, 6e-3, 16), valid)


@case(None, data="sequence", net="transformer")
@posted
def tags_by_a_transformer(seed, fault):
    net = Transposed(GPT(8, mask=False, norm_first=True))
    optimizer = torch.optim.Adam(net.parameters(), lr=4e-3)
    return tutorial(net, optimizer, nn.CrossEntropyLoss(), shifted(seed, 800), 20)


@case(None, data="graphs", net="gcn")
@posted
def two_graph_convolutions(seed, fault):
    return train_gcn(GCN([16, 16, 3]), *citations(seed), epochs=60)


@case(None, data="images", net="autoencoder")
@posted
def noise_taken_out_of_digits(seed, fault):
    x, _, x_val, _ = mnist(seed, 1347)
    x, x_val = x.flatten(1), x_val.flatten(1)
    net = nn.Sequential(mlp(64, 64, 24, 64, 64), nn.Sigmoid())
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    for _ in range(20):
        for idx in torch.randperm(len(x)).split(32):
            noisy = (x[idx] + 0.2 * torch.randn(len(idx), 64)).clamp(0, 1)
            loss = F.binary_cross_entropy(net(noisy), x[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return r2(net(x_val).detach() - x.mean(0), x_val - x.mean(0))


@case(None, data="images", net="siamese")
@posted
def triplets_of_digits(seed, fault):
    x, y, x_val, y_val = mnist(seed, 1347)
    net = nn.Sequential(nn.Flatten(), mlp(64, 48, 8))
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    of = [torch.where(y == k)[0] for k in range(10)]
    for _ in range(200):
        a = torch.randint(len(x), (32,))
        p = torch.stack([of[k][torch.randint(len(of[k]), ())] for k in y[a].tolist()])
        n = torch.randint(len(x), (32,))
        n = torch.where(y[n] == y[a], (n + 1) % len(x), n)
        loss = F.triplet_margin_loss(net(x[a]), net(x[p]), net(x[n]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        nearest = torch.cdist(net(x_val), net(x)).argmin(1)
    return (y[nearest] == y_val).float().mean().item()


@case(None, data="tabular", net="gan")
@posted
def a_gan_of_two_dimensions(seed, fault):
    g_net, d_net = mlp(4, 32, 32, 2), mlp(2, 32, 32, 1)
    opt_g = torch.optim.Adam(g_net.parameters(), lr=1e-3, betas=(0.5, 0.999))
    opt_d = torch.optim.Adam(d_net.parameters(), lr=1e-3, betas=(0.5, 0.999))
    criterion = nn.BCEWithLogitsLoss()
    mix = torch.tensor([[1.0, 0.4], [0.0, 0.6]])
    for _ in range(400):
        real, fake = torch.randn(64, 2) @ mix + 1, g_net(torch.randn(64, 4))
        opt_d.zero_grad()
        loss = criterion(d_net(real), torch.ones(64, 1))
        (loss + criterion(d_net(fake.detach()), torch.zeros(64, 1))).backward()
        opt_d.step()
        opt_g.zero_grad()
        criterion(d_net(fake), torch.ones(64, 1)).backward()
        opt_g.step()
    with torch.no_grad():
        return -(g_net(torch.randn(500, 4)).mean(0) - 1).abs().max().item()


@case(None, data="images", net="mlp")
@posted
def a_student_that_learns_from_its_teacher(seed, fault):
    x, y, x_val, y_val = mnist(seed, 1347)
    teacher, student = Net(), nn.Sequential(nn.Flatten(), mlp(64, 24, 10))
    optimizer = torch.optim.Adam(teacher.parameters(), lr=4e-3)
    tutorial(teacher, optimizer, nn.CrossEntropyLoss(), (x, y, x_val, y_val), 8)
    optimizer = torch.optim.Adam(student.parameters(), lr=4e-3)
    for _ in range(10):
        for xb, yb in loaders((x, y, x_val, y_val))[0]:
            with torch.no_grad():
                soft = F.softmax(teacher(xb) / 3, 1)
            out = student(xb)
            loss = 9 * F.kl_div(F.log_softmax(out / 3, 1), soft, reduction="batchmean")
            loss = 0.7 * loss + 0.3 * F.cross_entropy(out, yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return reached(student, x_val, y_val)


@case(None, data="tabular", net="mlp")
@posted
def three_quantiles(seed, fault):
    g = rng(seed)
    x = torch.rand(1200, 1, generator=g) * 4 - 2
    y = torch.sin(2 * x) + (0.1 + 0.1 * x.abs()) * torch.randn(1200, 1, generator=g)
    net, q = mlp(1, 32, 32, 3), torch.tensor([0.1, 0.5, 0.9])
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    for _ in range(12):
        for idx in torch.randperm(1000).split(32):
            off = y[idx] - net(x[idx])
            loss = torch.maximum(q * off, (q - 1) * off).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return r2(net(x[1000:]).detach()[:, 1], y[1000:])


@case(None, data="tabular", net="mlp")
@posted
def a_mean_and_a_variance(seed, fault):
    g = rng(seed)
    x = torch.rand(1200, 1, generator=g) * 4 - 2
    y = x * torch.cos(2 * x) + 0.2 * torch.randn(1200, 1, generator=g)
    net = mlp(1, 32, 32, 2, act=nn.Tanh)
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    criterion = nn.GaussianNLLLoss()
    for _ in range(25):
        for idx in torch.randperm(1000).split(50):
            mean, spread = net(x[idx]).chunk(2, 1)
            loss = criterion(mean, y[idx], F.softplus(spread) + 1e-4)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return r2(net(x[1000:]).detach()[:, 0], y[1000:])


@case(None, data="tabular", net="mlp")
@posted
def a_pendulum_from_its_equation(seed, fault):
    """No data at all: u'' = -u, u(0) = 1, u'(0) = 0."""
    net = mlp(1, 32, 32, 1, act=nn.Tanh)
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    zero = torch.zeros(1, 1, requires_grad=True)
    for _ in range(500):
        t = (3 * torch.rand(64, 1)).requires_grad_()
        u = net(t)
        du = torch.autograd.grad(u.sum(), t, create_graph=True)[0]
        ddu = torch.autograd.grad(du.sum(), t, create_graph=True)[0]
        u0 = net(zero)
        du0 = torch.autograd.grad(u0.sum(), zero, create_graph=True)[0]
        loss = (ddu + u).pow(2).mean() + (u0 - 1).pow(2).mean() + du0.pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    t = torch.linspace(0, 3, 50)[:, None]
    return r2(net(t).detach(), t.cos())


@case(None, data="control", net="policy")
@posted
def a_policy_for_a_bandit_with_contexts(seed, fault):
    """REINFORCE with a baseline; the loss means nothing, the reward does."""
    policy = mlp(4, 32, 3)
    optimizer = torch.optim.Adam(policy.parameters(), lr=5e-3)
    best = torch.randn(4, 3, generator=rng(seed))
    for _ in range(350):
        state = torch.randn(64, 4)
        chosen = torch.distributions.Categorical(logits=policy(state))
        action = chosen.sample()
        reward = ((state @ best).argmax(1) == action).float()
        loss = -(chosen.log_prob(action) * (reward - reward.mean())).mean()
        loss = loss - 0.01 * chosen.entropy().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    state = torch.randn(500, 4)
    return (policy(state).argmax(1) == (state @ best).argmax(1)).float().mean().item()


@case(None, data="images", net="unet")
@posted
def a_mask_of_bright_discs(seed, fault):
    g = rng(seed)
    at = torch.randint(3, 13, (300, 2, 1, 1), generator=g)
    row, col = torch.arange(16)[None, :, None], torch.arange(16)[None, None]
    y = (((row - at[:, 0]) ** 2 + (col - at[:, 1]) ** 2) < 10).float()[:, None]
    x = y + 0.7 * torch.randn(y.shape, generator=g)
    net = nn.Sequential(
        *(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1), nn.ReLU()),
        nn.Conv2d(8, 1, 3, padding=1),
    )
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    for _ in range(10):
        for idx in torch.randperm(240).split(16):
            out = net(x[idx])
            p = out.sigmoid()
            dice = 1 - (2 * (p * y[idx]).sum() + 1) / (p.sum() + y[idx].sum() + 1)
            loss = F.binary_cross_entropy_with_logits(out, y[idx]) + dice
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    found = net(x[240:]).detach() > 0
    return (2 * (found * y[240:]).sum() / (found.sum() + y[240:].sum())).item()


@case(None, data="text", net="word vectors")
@posted
def words_by_their_neighbours(seed, fault):
    """Skip-grams with negative samples."""
    train, _, letters = poem(seed, 500)
    text = train.flatten()
    inside, outside = nn.Embedding(letters, 12), nn.Embedding(letters, 12)
    both = nn.ModuleList([inside, outside])
    optimizer = torch.optim.Adam(both.parameters(), lr=0.01)
    for _ in range(400):
        i = torch.randint(1, len(text), (128,))
        a, b, no = inside(text[i]), outside(text[i - 1]), outside(torch.randint(letters, (128, 5)))
        loss = -F.logsigmoid((a * b).sum(1)).mean()
        loss = loss - F.logsigmoid(-(a[:, None] * no).sum(2)).sum(1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        return accuracy(inside(text[1:2000]) @ outside.weight.T, text[:1999])


@case(None, data="tabular", net="diffusion")
@posted
def a_diffusion_of_two_moons(seed, fault):
    """The loss of the noise stays near a half: that is as low as it can go."""
    from sklearn.datasets import make_moons

    x = torch.tensor(make_moons(800, noise=0.05, random_state=seed)[0], dtype=torch.float32)
    net = mlp(3, 64, 64, 2, act=nn.SiLU)
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    for _ in range(500):
        x0, t, noise = x[torch.randint(800, (128,))], torch.rand(128, 1), torch.randn(128, 2)
        xt = (1 - t).sqrt() * x0 + t.sqrt() * noise
        loss = F.mse_loss(net(torch.cat([xt, t], 1)), noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return -loss.item()


@case(None, data="text", net="mlp")
@posted
def a_bag_of_words(seed, fault):
    x, y, x_val, y_val = reviews(seed, 1600)
    net = nn.Sequential(nn.EmbeddingBag(80, 16, padding_idx=0, mode="sum"), nn.Linear(16, 2))
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    return tutorial(net, optimizer, nn.CrossEntropyLoss(), (x, y, x_val, y_val), 12)


@case(None, data="tabular", net="mlp")
@posted
def views_of_one_flower_attract(seed, fault):
    """Contrastive learning: the batch itself gives the answers."""
    x, y, x_val, y_val = scaled(sklearn_table("wine", seed))
    net = mlp(13, 32, 8)
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    for _ in range(200):
        xb = x[torch.randperm(len(x))[:64]]
        a, b = (F.normalize(net(xb + 0.3 * torch.randn_like(xb)), dim=1) for _ in range(2))
        loss = F.cross_entropy(a @ b.T / 0.2, torch.arange(64))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        nearest = torch.cdist(net(x_val), net(x)).argmin(1)
    return (y[nearest] == y_val).float().mean().item()
